// One line per message, for traces and scenario transcripts.
#pragma once

#include <string>

#include "rendezvous/protocol/messages.hpp"

namespace ddprun::sim {
[[nodiscard]] std::string words(const protocol::Message& message);
/// One of those that tell no story.
[[nodiscard]] bool is_heartbeat(const protocol::Message& message);
}  // namespace ddprun::sim

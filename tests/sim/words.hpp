// One line per message, for traces and scenario transcripts.
#pragma once

#include <string>

#include "rendezvous/protocol/messages.hpp"

namespace ddprun::sim {
[[nodiscard]] std::string words(const protocol::Message& message);
}  // namespace ddprun::sim

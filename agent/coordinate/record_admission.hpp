// Whether this node may coordinate the run that a coordinator before it has left in etcd. Pure.
#pragma once

#include <optional>
#include <string>

#include "rendezvous/protocol/messages.hpp"
#include "rendezvous/protocol/run_record.hpp"

namespace ddprun {

/// Why not, in a sentence: its terms, as `hello` would carry them, are not the run's.
[[nodiscard]] std::optional<std::string> refusal_of_record(const protocol::Hello& hello,
                                                           const RunRecord& record);

}  // namespace ddprun

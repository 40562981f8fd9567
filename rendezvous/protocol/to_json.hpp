// What the wire carries as JSON for files: an exit has one list of fields, on the link, in
// events.jsonl and in result.json. Pure.
#pragma once

#include <boost/json/object.hpp>

#include "rendezvous/protocol/messages.hpp"

namespace ddprun::protocol {

[[nodiscard]] boost::json::object to_json(const WorkerExit& exit);
[[nodiscard]] boost::json::object to_json(const RunFailure& failure);

}  // namespace ddprun::protocol

// The value under a run's second key (docs/internals/PROTOCOL.md, "Keys in etcd"). Pure functions.
#pragma once

#include <boost/json/value.hpp>

#include "rendezvous/protocol/run_record.hpp"

namespace ddprun::etcd {

[[nodiscard]] boost::json::value to_json(const RunRecord& record);
/// What is missing there is as in an empty record.
[[nodiscard]] RunRecord record_of(const boost::json::value& value);

}  // namespace ddprun::etcd

#include "rendezvous/etcd/record_json.hpp"

#include <algorithm>
#include <boost/json.hpp>

#include "base/limits.hpp"
#include "rendezvous/etcd/json_fields.hpp"

namespace ddprun::etcd {

namespace {

using protocol::Milliseconds;

json::object to_json(const RunRecord::Verdict& verdict) {
  json::object value{
      {"exit_code", verdict.exit_code}, {"text", verdict.text}, {"nodes", verdict.nodes}};
  if (verdict.term != 0) value["term"] = verdict.term;
  return value;
}

RunRecord::Verdict verdict_of(const json::value* value) {
  RunRecord::Verdict verdict{small(field(value, "exit_code")), text_of(field(value, "text")),
                             small(field(value, "nodes"))};
  verdict.term = integer(field(value, "term"));
  return verdict;
}

json::object to_json(const RunRecord::Agreed& agreed) {
  const protocol::Terms& terms = agreed.terms;
  json::object value{{"nodes_min", terms.nodes_min},
                     {"nodes_max", terms.nodes_max},
                     {"max_restarts", terms.max_restarts},
                     {"join_timeout_ms", terms.join_timeout.count()},
                     {"last_call_timeout_ms", terms.last_call_timeout.count()},
                     {"keep_alive_interval_ms", terms.keep_alive_interval.count()},
                     {"keep_alive_max_attempt", terms.keep_alive_max_attempt},
                     {"commands_may_differ", terms.commands_may_differ},
                     {"named", terms.is_named},
                     {"fingerprint", agreed.fingerprint},
                     {"program", terms.program},
                     {"host", agreed.host},
                     {"address", agreed.address}};
  if (terms.min_uptime) value["min_uptime_ms"] = terms.min_uptime->count();
  if (terms.hang_timeout) value["hang_timeout_ms"] = terms.hang_timeout->count();
  return value;
}

Milliseconds milliseconds(const json::value* value) {
  return Milliseconds(std::clamp<std::int64_t>(integer(value), 0, kDurationMax.count()));
}

std::optional<Milliseconds> optional_milliseconds(const json::value* value) {
  return value == nullptr ? std::nullopt : std::optional(milliseconds(value));
}

/// Terms that no run can have are none.
std::optional<RunRecord::Agreed> agreed_of(const json::value* value) {
  RunRecord::Agreed agreed;
  protocol::Terms& terms = agreed.terms;
  terms.nodes_min = small(field(value, "nodes_min"));
  terms.nodes_max = small(field(value, "nodes_max"));
  terms.max_restarts = small(field(value, "max_restarts"));
  terms.join_timeout = milliseconds(field(value, "join_timeout_ms"));
  terms.last_call_timeout = milliseconds(field(value, "last_call_timeout_ms"));
  terms.keep_alive_interval = milliseconds(field(value, "keep_alive_interval_ms"));
  terms.keep_alive_max_attempt = small(field(value, "keep_alive_max_attempt"));
  terms.commands_may_differ = is_true(field(value, "commands_may_differ"));
  terms.min_uptime = optional_milliseconds(field(value, "min_uptime_ms"));
  terms.hang_timeout = optional_milliseconds(field(value, "hang_timeout_ms"));
  terms.is_named = is_true(field(value, "named"));
  terms.program = text_of(field(value, "program"));
  agreed.fingerprint = text_of(field(value, "fingerprint"));
  agreed.host = text_of(field(value, "host"));
  agreed.address = text_of(field(value, "address"));
  const bool can_be = terms.nodes_min > 0 && terms.nodes_max >= terms.nodes_min &&
                      terms.nodes_max <= kNodesMax && terms.keep_alive_interval.count() > 0 &&
                      terms.keep_alive_max_attempt > 0 && terms.join_timeout.count() > 0;
  return can_be ? std::optional(std::move(agreed)) : std::nullopt;
}

}  // namespace

json::value to_json(const RunRecord& record) {
  json::object value{{"round", record.round}, {"restarts", record.restarts}};
  if (record.agreed) value["terms"] = to_json(*record.agreed);
  if (record.over) value["over"] = to_json(*record.over);
  if (record.before.empty()) return value;
  json::array before;
  for (const RunRecord::Ended& ended : record.before) {
    json::object one = to_json(ended.verdict);
    one["round"] = ended.round;
    before.push_back(std::move(one));
  }
  value["before"] = std::move(before);
  return value;
}

RunRecord record_of(const json::value& value) {
  RunRecord record;
  record.round = small(field(&value, "round"));
  record.restarts = small(field(&value, "restarts"));
  if (field(&value, "terms") != nullptr) record.agreed = agreed_of(field(&value, "terms"));
  if (const json::value* over = field(&value, "over")) record.over = verdict_of(over);
  const json::value* before = field(&value, "before");
  for (std::size_t i = 0; i < kEndedRunsMax; ++i) {
    const json::value* one = element(before, i);
    if (one == nullptr) break;
    record.before.push_back({small(field(one, "round")), verdict_of(one)});
  }
  return record;
}

}  // namespace ddprun::etcd

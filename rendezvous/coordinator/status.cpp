#include "rendezvous/coordinator/status.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "base/version.hpp"
#include "rendezvous/protocol/names.hpp"

namespace ddprun::coordinator {

namespace {

namespace json = boost::json;
using round::NodeStatus;
using round::Status;

std::int64_t milliseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

json::value text_or_null(const std::string& text) {
  return text.empty() ? json::value(nullptr) : json::value(text);
}

json::object json_of(const NodeStatus& node) {
  json::object object;
  object["host"] = node.host;
  object["address"] = node.address;
  const bool placed = node.group_rank >= 0;
  object["group_rank"] = placed ? json::value(node.group_rank) : json::value(nullptr);
  object["rank_base"] = placed ? json::value(node.rank_base.value()) : json::value(nullptr);
  object["workers"] = node.workers;
  object["state"] = protocol::name_of(node.state);
  object["silent_ms"] = milliseconds(node.silent);
  object["version"] = text_or_null(node.version);
  return object;
}

json::object json_of(const round::GoneNode& node) {
  return {{"host", node.host},
          {"address", node.address},
          {"ranks", text_or_null(node.ranks)},
          {"version", text_or_null(node.version)},
          {"why", node.why},
          {"ago_ms", milliseconds(node.ago)}};
}

/// No line of its output: a page may be read by other users of the machine.
json::value json_of(const std::optional<protocol::Done>& verdict) {
  if (!verdict) return nullptr;
  return json::object{{"exit_code", verdict->exit_code}, {"text", verdict->text}};
}

json::object json_of(const round::Counters& counters) {
  return {{"rounds", counters.rounds},       {"joins", counters.joins},
          {"losses", counters.losses},       {"refusals", counters.refusals},
          {"held_back", counters.held_back}, {"stale", counters.stale}};
}

json::object json_of(const RunView& run) {
  const Status& status = run.status;
  json::object object;
  object["run_id"] = status.run_id.value();
  object["phase"] = round::name_of(status.phase);
  object["round"] = status.round.number.value();
  object["reason"] = status.why;
  object["restarts"] = status.restarts.value();
  object["max_restarts"] = status.terms.max_restarts;
  object["nodes_min"] = status.terms.nodes_min;
  object["nodes_max"] = status.terms.nodes_max;
  json::array nodes;
  for (const NodeStatus& node : status.nodes) nodes.push_back(json_of(node));
  object["nodes_here"] = nodes.size();
  object["nodes"] = std::move(nodes);
  json::array gone;
  for (const round::GoneNode& node : status.gone) gone.push_back(json_of(node));
  object["gone"] = std::move(gone);
  object["verdict"] = json_of(status.verdict);
  object["missing_node_ranks"] = round::waits_for_nodes(status)
                                     ? json::array(status.missing.begin(), status.missing.end())
                                     : json::array();
  object["counters"] = json_of(status.counters);
  json::array log;
  for (const RunView::Line& line : run.log) {
    log.push_back({{"ago_ms", milliseconds(line.ago)}, {"text", line.text}});
  }
  object["log"] = std::move(log);
  return object;
}

}  // namespace

std::string to_json(const ServerView& view) {
  json::object object;
  object["version"] = kVersion;
  object["address"] = view.address;
  object["uptime_ms"] = milliseconds(view.uptime);
  object["time_ms"] = view.now.time_since_epoch().count();
  object["connections"] = view.connections;
  object["agents"] = view.agents;
  object["rejected"] = view.rejected;
  object["store"] = {{"connections", view.store.connections},
                     {"keys", view.store.keys},
                     {"waits", view.store.waits},
                     {"bytes", view.store.bytes},
                     {"refused", view.store.refused}};
  json::array runs;
  for (const RunView& run : view.runs) runs.push_back(json_of(run));
  object["runs"] = std::move(runs);
  json::array moved;
  for (const MovedRun& run : view.moved) {
    moved.push_back({{"run_id", run.run_id}, {"coordinator", run.coordinator}});
  }
  object["moved"] = std::move(moved);
  return json::serialize(object) + "\n";
}

}  // namespace ddprun::coordinator

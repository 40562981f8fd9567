#include "agent/control/status.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace ddprun::control {

namespace {

namespace json = boost::json;

template <class Time>
std::int64_t milliseconds(Time duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

json::value text_or_null(const std::string& text) {
  return text.empty() ? json::value(nullptr) : json::value(text);
}

json::object json_of(const WorkerStatus& worker) {
  json::object object;
  object["rank"] = worker.rank.value();
  object["local_rank"] = worker.local_rank.value();
  object["pid"] = worker.pid > 0 ? json::value(worker.pid) : json::value(nullptr);
  object["state"] = text_or_null(worker.state == 0 ? "" : std::string(1, worker.state));
  object["silent_ms"] =
      worker.silent ? json::value(milliseconds(*worker.silent)) : json::value(nullptr);
  object["step"] = worker.step ? json::value(worker.step->number) : json::value(nullptr);
  object["step_ago_ms"] =
      worker.step ? json::value(milliseconds(worker.step->ago)) : json::value(nullptr);
  object["warm"] = worker.warm;
  return object;
}

json::object json_of(const SpareStatus& spare) {
  return {{"spare", spare.number},
          {"pid", spare.pid},
          {"state", text_or_null(spare.state == 0 ? "" : std::string(1, spare.state))},
          {"waits", spare.waits}};
}

json::value cluster_of(const std::string& text) {
  boost::system::error_code failed;
  json::value value = json::parse(text, failed);
  return failed ? json::value(nullptr) : value;
}

json::object identity_of(const NodeStatus& status) {
  json::object object;
  object["version"] = status.version;
  object["run_id"] = status.run_id.value();
  object["host"] = status.host;
  object["pid"] = status.pid;
  object["command"] = status.command;
  object["started_ms"] = milliseconds(status.started.time_since_epoch());
  return object;
}

}  // namespace

std::string about(const NodeStatus& status) {
  return json::serialize(identity_of(status)) + "\n";
}

std::string to_json(const NodeStatus& status) {
  json::object object = identity_of(status);
  object["ok"] = true;
  object["age_ms"] = milliseconds(status.age);
  object["round"] = status.round.value();
  object["state"] = status.state;
  object["state_ms"] = milliseconds(status.in_state);
  object["waits"] = text_or_null(status.waits);
  object["workers"] = status.workers;
  object["restarts"] = status.restarts.value();
  object["max_restarts"] = status.max_restarts;
  object["store"] = text_or_null(status.store);
  object["log_dir"] = text_or_null(status.log_dir);
  object["coordinator"] = text_or_null(status.coordinator);
  json::array ranks;
  for (const WorkerStatus& worker : status.ranks) ranks.push_back(json_of(worker));
  object["ranks"] = std::move(ranks);
  json::array spares;
  for (const SpareStatus& spare : status.spares) spares.push_back(json_of(spare));
  object["spares"] = std::move(spares);
  object["cluster"] = cluster_of(status.cluster);
  return json::serialize(object) + "\n";
}

}  // namespace ddprun::control

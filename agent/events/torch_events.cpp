#include "agent/events/torch_events.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <utility>

#include "agent/events/event.hpp"
#include "base/printable.hpp"

namespace ddprun {

namespace json = boost::json;

namespace {

// torchrun's name for the rendezvous that a run would have there.
const char* backend_of(const LaunchConfig& config) {
  const bool is_static = config.rendezvous ? config.rendezvous->master == MasterChoice::kFixed
                                           : config.store.master_port != 0;
  return is_static ? "static" : "c10d";
}

std::string name_of_file(const std::string& path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

LocalRank local_rank_of(const RunEvent& event) {
  return LocalRank(static_cast<int>(event.number("local_rank")));
}

// What torch notes of a failure without an error file, as text.
std::string without_record(int exit_code) {
  json::object error{{"message", "<NONE>"}};
  if (exit_code > 0) {
    error["errorTraits"] = {{"category", "system_terminated_error"}, {"retryability", "False"}};
  }
  return json::serialize(error);
}

std::string record_of(const std::string& error_json, int exit_code) {
  if (error_json.empty() || error_json.size() > kTorchErrorBytesMax) {
    return without_record(exit_code);
  }
  json::error_code wrong;
  const json::value record = json::parse(error_json, wrong);
  return wrong ? without_record(exit_code) : json::serialize(record);
}

}  // namespace

TorchEvents::TorchEvents(const LaunchConfig& config, std::string host)
    : run_(config.run_id.value()),
      role_(config.workers.role),
      host_(std::move(host)),
      backend_(backend_of(config)),
      entry_point_(name_of_file(config.workers.command.front())) {}

TorchEvents::Lines TorchEvents::round(const RoundFacts& facts, Duration took, WallTime now) {
  facts_ = facts;
  workers_.clear();
  Part rendezvous{"RENDEZVOUS"};
  rendezvous.duration_ms = std::chrono::duration<double, std::milli>(took).count();
  Part ranks{"ASSIGN_WORKER_RANKS"};  // they came with the round
  ranks.duration_ms = 0.0;
  return {line(rendezvous, now), line(ranks, now)};
}

TorchEvents::Lines TorchEvents::take(const RunEvent& event, WallTime now) {
  const bool started = event.name == "worker_started";
  if (started || event.name == "worker_kept" || event.name == "spare_used") {
    const LocalRank rank = local_rank_of(event);
    workers_.insert_or_assign(rank, Worker{static_cast<int>(event.number("pid"))});
    if (!started) return {};
    Part start{"START"};
    start.worker = rank;
    return {line(start, now)};
  }
  const auto exited =
      event.name == "worker_exited" ? workers_.find(local_rank_of(event)) : workers_.end();
  if (exited == workers_.end()) return {};
  const auto signal = static_cast<int>(event.number("signal"));
  exited->second.exit_code = signal != 0 ? -signal : static_cast<int>(event.number("exit_code"));
  exited->second.was_stopped = event.number("sent_signal") != 0;
  return {};
}

TorchEvents::Lines TorchEvents::end(const End& end, WallTime now) const {
  Lines lines;
  for (const auto& [rank, worker] : workers_) lines.push_back(line(end_of(rank, worker, end), now));
  Part agent{end.succeeded ? "SUCCEEDED" : "FAILED"};
  if (!end.succeeded) agent.raw_error = clean_utf8(end.text, kEventTextBytesMax);
  agent.took = end.took;
  lines.push_back(line(agent, now));
  return lines;
}

TorchEvents::Part TorchEvents::end_of(LocalRank rank, const Worker& worker, const End& end) const {
  Part part{"TERMINATED"};
  part.worker = rank;
  part.took = end.took;
  const bool is_first = end.failed && *end.failed == Rank(facts_.first_rank.value() + rank.value());
  const int exit_code = worker.exit_code.value_or(0);
  if (end.succeeded) {
    part.state = "SUCCEEDED";
  } else if (is_first || (exit_code != 0 && !worker.was_stopped)) {
    part.state = "FAILED";
    part.failed = true;
    part.raw_error = record_of(is_first ? end.error_json : "", exit_code);
  }
  return part;
}

// A text in a text, and single values in arrays: torch's own form.
std::string TorchEvents::details(const Part& part) const {
  json::object fields{{"group_world_size", facts_.groups}, {"entry_point", entry_point_}};
  if (part.worker) {
    const auto found = workers_.find(*part.worker);
    const bool known = part.failed && found != workers_.end();
    const auto one = [](json::value value) { return json::array{std::move(value)}; };
    fields["local_rank"] = one(part.worker->value());
    fields["role_rank"] = one(facts_.first_role_rank + part.worker->value());
    fields["role_world_size"] = one(facts_.role_world.value());
    fields["exit_code"] = one(nullptr);
    fields["worker_pid"] = one(nullptr);
    if (known) {
      if (found->second.exit_code) fields["exit_code"] = one(*found->second.exit_code);
      fields["worker_pid"] = one(found->second.pid);
    }
  }
  return json::serialize(clean_texts(std::move(fields)));
}

std::string TorchEvents::line(const Part& part, WallTime now) const {
  using std::chrono::duration_cast;
  json::object metadata{{"run_id", run_},
                        {"global_rank", nullptr},
                        {"group_rank", facts_.group_rank},
                        {"worker_id", nullptr},
                        {"role", role_},
                        {"hostname", host_},
                        {"state", part.state},
                        {"total_run_time", duration_cast<std::chrono::seconds>(part.took).count()},
                        {"rdzv_backend", backend_}};
  if (part.worker) {
    metadata["global_rank"] = facts_.first_rank.value() + part.worker->value();
    metadata["worker_id"] = std::to_string(workers_.at(*part.worker).pid);
  }
  metadata = clean_texts(std::move(metadata));
  metadata["raw_error"] = part.raw_error;
  metadata["metadata"] = details(part);
  metadata["agent_restarts"] = facts_.restarts.value();
  metadata["duration_ms"] = part.duration_ms;
  const json::object event{
      {"name", "torchelastic.worker.status." + part.state},
      {"source", part.worker ? "WORKER" : "AGENT"},
      {"timestamp", duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count()},
      {"metadata", std::move(metadata)}};
  return json::serialize(event);
}

}  // namespace ddprun

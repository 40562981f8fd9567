#include "agent/events/run_events.hpp"

#include <boost/json/serialize.hpp>
#include <utility>
#include <variant>

#include "agent/report/lines.hpp"
#include "agent/report/verdict.hpp"
#include "base/program_name.hpp"
#include "rendezvous/protocol/names.hpp"
#include "rendezvous/protocol/to_json.hpp"

namespace ddprun {

namespace json = boost::json;

namespace {

/// succeeded, failed, stopped or error.
std::string outcome_of(const RunEnd& end) {
  if (end.exit_code == 0) return "succeeded";
  if (end.failure) return "failed";
  return end.stop_signal != 0 && end.exit_code == 128 + end.stop_signal ? "stopped" : "error";
}

double exact_milliseconds_of(Duration duration) {
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(duration);
  return static_cast<double>(microseconds.count()) / 1000;
}

std::int64_t milliseconds_of(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

json::object name_fields(const WorkerName& worker) {
  return {{"rank", worker.rank.value()},
          {"local_rank", worker.local_rank.value()},
          {"pid", worker.pid}};
}

json::object failure_fields(const RunFailure& failure) {
  json::object fields = protocol::to_json(failure);
  fields["code"] = failure.finding ? failure.finding->code : judge(failure.first).code;
  return fields;
}

// One for each message that changes something here.
std::optional<RunEvent> message_event(const protocol::Stop& stop) {
  return RunEvent{
      "stop_ordered",
      stop.round,
      {{"signal", stop.signal}, {"grace_ms", stop.grace.count()}, {"text", stop.reason}}};
}

std::optional<RunEvent> message_event(const protocol::Done& done) {
  RunEvent event{"verdict", {}, {{"exit_code", done.exit_code}, {"text", done.text}}};
  if (done.failure) event.fields["failure"] = failure_fields(*done.failure);
  return event;
}

std::optional<RunEvent> message_event(const protocol::Refused& refused) {
  return RunEvent{
      "refused", {}, {{"code", protocol::name_of(refused.code)}, {"text", refused.sentence}}};
}

std::optional<RunEvent> message_event(const protocol::LetGo& let_go) {
  return RunEvent{"let_go", {}, {{"text", let_go.text}}};
}

template <class Other>
std::optional<RunEvent> message_event(const Other&) {
  return std::nullopt;
}

// A worker cannot make events.jsonl grow with control characters, which take six bytes there.
std::string cut_text(const std::string& text) {
  constexpr std::size_t kPrintedMax = 1024;
  std::size_t printed = 0;
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    printed += static_cast<unsigned char>(text[end]) < ' ' ? 6 : 1;
    if (printed > kPrintedMax) break;
  }
  return end == text.size() ? text : text.substr(0, end) + " ...";
}

}  // namespace

RunEvent start_event(const LaunchConfig& config, int pid) {
  RunEvent event{"start", {}, {}};
  event.fields["version"] = kVersion;
  event.fields["pid"] = pid;
  event.fields["workers"] = config.workers.count;
  event.fields["nodes_min"] = config.rendezvous ? config.rendezvous->nodes_min : 1;
  event.fields["nodes_max"] = config.rendezvous ? config.rendezvous->nodes_max : 1;
  event.fields["max_restarts"] = config.stopping.max_restarts;
  return event;
}

namespace {

// A round that continues with fewer nodes, or a verdict because of one.
std::optional<RunEvent> loss_event(const client::Event& event, Round round, int nodes) {
  const auto* incoming = std::get_if<client::Incoming>(&event);
  if (incoming == nullptr || nodes == 0) return std::nullopt;
  if (const auto* start = std::get_if<protocol::StartRound>(&incoming->message)) {
    if (start->stamp.number <= round || start->group_size >= nodes) return std::nullopt;
    return RunEvent{"node_lost",
                    round,
                    {{"lost", nodes - start->group_size},
                     {"nodes", start->group_size},
                     {"text", start->reason}}};
  }
  const auto* done = std::get_if<protocol::Done>(&incoming->message);
  if (done == nullptr || !done->node_lost) return std::nullopt;
  return RunEvent{"node_lost", round, {{"text", done->text}}};
}

}  // namespace

std::vector<RunEvent> LinkEvents::of(const client::Event& event) {
  std::vector<RunEvent> all;
  if (auto loss = loss_event(event, round_, nodes_)) all.push_back(std::move(*loss));
  if (auto own = one_of(event)) all.push_back(std::move(*own));
  return all;
}

std::optional<RunEvent> LinkEvents::one_of(const client::Event& event) {
  if (std::holds_alternative<client::LinkUp>(event)) {
    is_up_ = true;
    return RunEvent{"link_up", round_, {}};
  }
  if (const auto* down = std::get_if<client::LinkDown>(&event)) {
    if (!std::exchange(is_up_, false)) return std::nullopt;
    return RunEvent{"link_lost", round_, {{"text", down->evidence}}};
  }
  const auto* incoming = std::get_if<client::Incoming>(&event);
  if (incoming == nullptr) return std::nullopt;
  const protocol::Message& message = incoming->message;
  if (const auto* start = std::get_if<protocol::StartRound>(&message)) return of(*start);
  if (const auto* waiting = std::get_if<protocol::Waiting>(&message)) return of(*waiting);
  return std::visit([](const auto& other) { return message_event(other); }, message);
}

std::optional<RunEvent> LinkEvents::of(const protocol::Waiting& waiting) {
  if (std::exchange(waiting_, waiting.text) == waiting.text) return std::nullopt;
  return RunEvent{"waiting",
                  round_,
                  {{"nodes", waiting.here},
                   {"nodes_min", waiting.nodes_min},
                   {"nodes_max", waiting.nodes_max},
                   {"text", waiting.text}}};
}

std::optional<RunEvent> LinkEvents::of(const protocol::StartRound& start) {
  if (start.stamp.number <= round_) return std::nullopt;
  RunEvent event{"round",
                 start.stamp.number,
                 {{"cause", cause_of(start)},
                  {"text", start.reason},
                  {"restarts", start.restarts.value()},
                  {"node", start.group_rank},
                  {"nodes", start.group_size},
                  {"first_rank", start.rank_base.value()},
                  {"world_size", start.world_size.value()}}};
  round_ = start.stamp.number;
  nodes_ = start.group_size;
  restarts_ = start.restarts;
  return event;
}

const char* LinkEvents::cause_of(const protocol::StartRound& start) const {
  if (start.restarts > restarts_) return "restart";
  if (nodes_ == 0) return "first";
  if (start.group_size < nodes_) return "node_lost";
  return start.group_size > nodes_ ? "node_joined" : "membership";
}

RunEvent worker_started_event(Round round, const WorkerName& worker) {
  return {"worker_started", round, name_fields(worker)};
}

RunEvent worker_kept_event(Round round, const WorkerName& worker) {
  return {"worker_kept", round, name_fields(worker)};
}

RunEvent spare_used_event(Round round, const WorkerName& worker, int spare) {
  RunEvent event{"spare_used", round, name_fields(worker)};
  event.fields["spare"] = spare;
  return event;
}

RunEvent spare_event(const char* name, int spare, int pid) {
  return {name, Round(0), {{"spare", spare}, {"pid", pid}}};
}

RunEvent worker_joined_event(Round round, const WorkerName& worker) {
  return {"worker_joined", round, name_fields(worker)};
}

RunEvent recovered_event(Round round, const Recovery& recovery, Duration took) {
  RunEvent event{"recovered", round, {{"kept", recovery.kept}, {"started", recovery.started}}};
  if (recovery.from_spares > 0) event.fields["from_spares"] = recovery.from_spares;
  event.fields["took_ms"] = milliseconds_of(took);
  return event;
}

RunEvent worker_exited_event(Round round, const WorkerName& worker, const ExitStatus& status,
                             int sent, bool exiting) {
  RunEvent event{"worker_exited", round, name_fields(worker)};
  event.fields["exit_code"] = status.code();
  event.fields["signal"] = status.signal();
  event.fields["sent_signal"] = sent;
  event.fields["exiting"] = exiting;
  return event;
}

RunEvent first_failure_event(Round round, const WorkerExit& first) {
  const Verdict verdict = judge_at_once(first);
  return {"first_failure",
          round,
          {{"code", verdict.code}, {"text", verdict.text}, {"exit", protocol::to_json(first)}}};
}

RunEvent spawn_failed_event(Round round, LocalRank rank, const std::string& text) {
  return {"spawn_failed", round, {{"local_rank", rank.value()}, {"text", text}}};
}

RunEvent stop_event(Round round, const char* name, int signal, int workers) {
  return {name, round, {{"signal", signal}, {"workers", workers}}};
}

RunEvent give_up_event(Round round, const GiveUp& order) {
  return {"gave_up",
          round,
          {{"code", order.why.code}, {"text", order.why.text}, {"exit_code", order.exit_code}}};
}

std::optional<RunEvent> cleanup_event(Round round, const RoundResult& result) {
  const CleanupFacts facts = result.cleanup_facts();
  if (facts.workers == 0 && facts.descendants == 0 && facts.still_alive == 0) return std::nullopt;
  RunEvent event{"cleanup",
                 round,
                 {{"workers", facts.workers},
                  {"descendants", facts.descendants},
                  {"still_alive", facts.still_alive},
                  {"took_ms", milliseconds_of(facts.took)}}};
  std::string survivors;
  for (const Unkillable& unkillable : result.unkillable) {
    if (!survivors.empty()) survivors += ", ";
    if (!unkillable.left_behind.empty()) survivors += unkillable.left_behind + " of ";
    survivors += who(unkillable.worker);
  }
  if (!survivors.empty()) event.fields["text"] = survivors;
  return event;
}

RunEvent own_workers_event(Round round, const std::string& text) {
  return {"own_workers", round, {{"text", text}}};
}

RunEvent ready_event(Round round, Rank rank) {
  return {"ready", round, {{"rank", rank.value()}}};
}

RunEvent checkpoint_event(Round round, Rank rank, std::int64_t step, const std::string& path) {
  return {"checkpoint", round, {{"rank", rank.value()}, {"step", step}, {"path", cut_text(path)}}};
}

RunEvent section_event(Round round, Rank rank, const std::string& name, Duration lasts,
                       Duration limit) {
  return {"section_exceeded",
          round,
          {{"rank", rank.value()},
           {"name", name},
           {"lasts_ms", milliseconds_of(lasts)},
           {"limit_ms", milliseconds_of(limit)}}};
}

RunEvent timer_event(Round round, Rank rank, const WorkerTimer& timer) {
  return {"timer_expired",
          round,
          {{"rank", rank.value()},
           {"pid", timer.pid},
           {"scope", cut_text(timer.scope)},
           {"signal", timer.signal}}};
}

StepSpan common(const StepSpan& one, const StepSpan& other) {
  return {std::max(one.first, other.first), std::min(one.last, other.last),
          std::min(one.first_ago, other.first_ago), std::max(one.last_ago, other.last_ago),
          one.ranks + other.ranks};
}

RunEvent steps_event(Round round, const StepSpan& steps) {
  const auto ms = [](Duration ago) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(ago).count();
  };
  return {"steps",
          round,
          {{"workers", steps.ranks},
           {"first_step", steps.first},
           {"last_step", steps.last},
           {"first_ago_ms", ms(steps.first_ago)},
           {"last_ago_ms", ms(steps.last_ago)}}};
}

RunEvent round_ended_event(Round round, const RoundResult& result) {
  const char* state = result.state == GroupState::kSucceeded ? "succeeded"
                      : result.state == GroupState::kFailed  ? "failed"
                                                             : "stopped";
  return {"round_ended",
          round,
          {{"state", state},
           {"stopped", result.stopped},
           {"killed", result.killed},
           {"unkillable", result.unkillable.size()},
           {"stop_ms", milliseconds_of(result.stop_took)}}};
}

RunEvent gpu_release_event(Round next, const char* state, Duration waited,
                           const std::string& text) {
  RunEvent event{"gpu_release", next, {{"state", state}, {"waited_ms", milliseconds_of(waited)}}};
  if (!text.empty()) event.fields["text"] = text;
  return event;
}

RunEvent signal_event(int signal, const char* action, const std::string& from) {
  RunEvent event{
      "signal", {}, {{"signal", signal}, {"name", signal_name(signal)}, {"action", action}}};
  if (!from.empty()) event.fields["from"] = from;
  return event;
}

RunEvent end_event(const RunEnd& end) {
  return {"end",
          end.rounds,
          {{"outcome", outcome_of(end)},
           {"exit_code", end.exit_code},
           {"text", end.text},
           {"longest_turn_ms", exact_milliseconds_of(end.longest_turn)}}};
}

RunEvent slow_turn_event(Duration took, Duration cpu) {
  return {"slow_turn",
          {},
          {{"took_ms", exact_milliseconds_of(took)}, {"cpu_ms", exact_milliseconds_of(cpu)}}};
}

std::string result_text(const RunEnd& end, const RunId& run, const std::string& host) {
  json::object result;
  result["run"] = run.value();
  result["host"] = host;
  result["version"] = kVersion;
  result["coordinator"] = end.coordinator;
  result["outcome"] = outcome_of(end);
  result["exit_code"] = end.exit_code;
  result["text"] = end.text;
  if (end.failure) result["failure"] = failure_fields(*end.failure);
  result["rounds"] = end.rounds.value();
  result["restarts"] = end.restarts.value();
  result["workers"] = end.workers;
  result["ended"] = date_text(end.ended);
  result["took_ms"] = milliseconds_of(end.took);
  result["log_dir"] = end.log_dir;
  return json::serialize(clean_texts(std::move(result))) + "\n";
}

}  // namespace ddprun

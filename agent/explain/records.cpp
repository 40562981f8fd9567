#include "agent/explain/records.hpp"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

#include "base/exit_status.hpp"

namespace ddprun::explain {

namespace json = boost::json;

namespace {

constexpr std::int64_t kNumberMax = 1 << 30;  // of rounds, events, ranks

std::string text_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

int number_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr || !value->is_int64()) return 0;
  return static_cast<int>(std::clamp<std::int64_t>(value->get_int64(), 0, kNumberMax));
}

double moment_of(const json::object& object) {
  const json::value* value = object.if_contains("ms");
  if (value == nullptr || !value->is_double()) return 0;
  return std::clamp(value->get_double(), 0.0, 1e15);
}

const json::object& object_of(const json::object& object, std::string_view name) {
  static const json::object kEmpty;
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_object() ? value->get_object() : kEmpty;
}

std::int64_t step_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  constexpr std::int64_t kStepMax = std::int64_t{1} << 53;
  if (value == nullptr || !value->is_int64()) return 0;
  return std::clamp<std::int64_t>(value->get_int64(), 0, kStepMax);
}

/// None where they contradict each other.
std::optional<Steps> steps_of(const json::object& event, double at) {
  const auto since = [&](std::string_view name) {
    return std::max(0.0, at - static_cast<double>(step_of(event, name)));
  };
  const Steps steps{step_of(event, "first_step"), step_of(event, "last_step"),
                    since("first_ago_ms"), since("last_ago_ms")};
  if (steps.last < steps.first || steps.to < steps.from) return std::nullopt;
  return steps;
}

Failure failure_of(const json::object& exit, const std::string& code, const std::string& text) {
  Failure failure{code, text, number_of(exit, "rank"), number_of(exit, "pid"),
                  text_of(exit, "host")};
  failure.given_up = !object_of(exit, "given_up").empty();
  return failure;
}

/// How the rank ended that failed first, as the verdict tells it to every node.
Failure told_of(const json::object& verdict) {
  const json::object& first = object_of(verdict, "first");
  const int signal = number_of(first, "signal");
  const std::string how = signal != 0
                              ? signal_name(signal)
                              : "exit code " + std::to_string(number_of(first, "exit_code"));
  Failure told = failure_of(first, text_of(verdict, "code"), "ended with " + how);
  if (told.given_up) told.text = text_of(object_of(first, "given_up"), "text");
  told.at = number_of(first, "after_ms");
  return told;
}

void take_round(RoundRecord& round, const json::object& event, double at) {
  round.cause = text_of(event, "cause");
  round.text = text_of(event, "text");
  round.restarts = number_of(event, "restarts");
  round.node = number_of(event, "node");
  round.nodes = number_of(event, "nodes");
  round.first_rank = number_of(event, "first_rank");
  round.world_size = number_of(event, "world_size");
  round.decided = at;
}

/// When the rank that failed first exited: that is known later where it was a witness, whose exit
/// is recorded once it is clear what it has seen.
void put_exit(RoundRecord& round, double since_start) {
  for (Exit& exit : round.exits) {
    const bool is_its = exit.rank == round.failure->rank && !round.failure->given_up;
    if (is_its && since_start > 0) exit.at = std::min(exit.at, since_start);
  }
}

/// Events about the workers of a round.
void take_of_round(RoundRecord& round, const std::string& name, const json::object& event,
                   double at) {
  if (name == "round") take_round(round, event, at);
  if (name == "worker_started" && !round.first_started) round.first_started = at;
  if (name == "all_running") round.all_running = at;
  if (name == "worker_kept") round.keeps = true;
  if (name == "recovered") round.recovered = at;
  if (name == "stop_began" && !round.stop_began) round.stop_began = at;
  if (name == "stop_ordered") {
    round.ordered_stop = text_of(event, "text");
    if (!round.stop_ordered) round.stop_ordered = at;
  }
  if (name == "worker_exited") {
    round.exits.push_back({at, number_of(event, "rank"), number_of(event, "exit_code"),
                           number_of(event, "signal"), number_of(event, "sent_signal")});
  }
  if (name == "first_failure" && !round.failure) {
    round.failure =
        failure_of(object_of(event, "exit"), text_of(event, "code"), text_of(event, "text"));
    round.failure->at = at;
    put_exit(round, number_of(object_of(event, "exit"), "since_start_ms"));
  }
  if (name == "steps") round.steps = steps_of(event, at);
  if (name == "cleanup") {
    round.descendants = number_of(event, "descendants");
    round.still_alive = number_of(event, "still_alive");
    round.survivors = text_of(event, "text");
  }
  if (name == "round_ended") {
    round.ended = at;
    round.state = text_of(event, "state");
    round.stopped = number_of(event, "stopped");
    round.killed = number_of(event, "killed");
  }
}

void take_of_run(NodeRecord& node, const std::string& name, const json::object& event) {
  if (name == "signal" && text_of(event, "action") == "stop") {
    const int round = node.rounds.empty() ? 0 : node.rounds.rbegin()->first;
    node.signals.push_back({text_of(event, "name"), round});
  }
  if (name == "start") node.nodes_max = number_of(event, "nodes_max");
  if (name == "let_go") node.let_go = text_of(event, "text");
  if (name == "verdict") {
    node.verdict_text = text_of(event, "text");
    node.verdict_code = number_of(event, "exit_code");
    const json::object& failure = object_of(event, "failure");
    if (failure.empty()) return;
    node.verdict = failure_of(object_of(failure, "first"), text_of(failure, "code"),
                              text_of(object_of(failure, "finding"), "text"));
    node.told = told_of(failure);
    node.verdict_also = text_of(failure, "also");
    node.verdict_round = number_of(failure, "round");
  }
  if (name == "end") {
    node.outcome = text_of(event, "outcome");
    node.exit_code = number_of(event, "exit_code");
    node.end_text = text_of(event, "text");
  }
}

void take(NodeRecord& node, const json::object& event, int& expected) {
  const int number = number_of(event, "n");
  if (number > expected) node.missing += static_cast<std::uint64_t>(number - expected);
  expected = std::max(expected, number + 1);
  if (node.run.empty()) node.run = text_of(event, "run");
  if (node.host.empty()) node.host = text_of(event, "host");
  const double at = moment_of(event);
  if (at >= node.last) node.last_time = text_of(event, "time");
  node.last = std::max(node.last, at);
  const std::string name = text_of(event, "event");
  take_of_run(node, name, event);
  const int round = number_of(event, "round");
  const bool known = node.rounds.count(round) != 0;
  if (round > 0 && (known || name == "round")) take_of_round(node.rounds[round], name, event, at);
}

}  // namespace

NodeRecord read_record(const std::string& path, std::string_view text) {
  NodeRecord node;
  node.path = path;
  int expected = 1;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    boost::system::error_code failed;
    const json::value value = line.size() <= kLineBytesMax ? json::parse(line, failed) : nullptr;
    if (failed || !value.is_object() || !value.get_object().contains("event")) {
      ++node.unreadable;
    } else {
      take(node, value.get_object(), expected);
    }
  }
  return node;
}

const RoundRecord* round_of(const NodeRecord& node, int round) {
  const auto found = node.rounds.find(round);
  return found == node.rounds.end() ? nullptr : &found->second;
}

std::set<int> rounds_of(const Nodes& nodes) {
  std::set<int> rounds;
  for (const NodeRecord& node : nodes) {
    for (const auto& [number, round] : node.rounds) rounds.insert(number);
  }
  return rounds;
}

const RoundRecord* any_record(const Nodes& nodes, int round) {
  for (const NodeRecord& node : nodes) {
    const RoundRecord* const found = round_of(node, round);
    if (found != nullptr) return found;
  }
  return nullptr;
}

std::string text_of(const Failure& failure) {
  return "[" + failure.code + "] " + failure.text;
}

std::string failure_text(const Failure& failure) {
  std::string what = text_of(failure);
  if (failure.given_up) return what;
  return "rank " + std::to_string(failure.rank) + " (pid " + std::to_string(failure.pid) + ") on " +
         failure.host + ": " + what;
}

const Failure* finding_in(const Nodes& nodes, int round) {
  for (const NodeRecord& node : nodes) {
    if (node.verdict && node.verdict_round == round && !node.verdict->text.empty()) {
      return &*node.verdict;
    }
  }
  return nullptr;
}

namespace {

/// The verdict tells all nodes who failed first, also where the node of that rank left no record.
const Failure* told_in(const Nodes& nodes, int round, const std::vector<Failure>& recorded) {
  for (const NodeRecord& node : nodes) {
    if (!node.told || node.verdict_round != round || node.told->text.empty()) continue;
    const bool is_recorded =
        std::any_of(recorded.begin(), recorded.end(), [&](const Failure& failure) {
          return failure.given_up || failure.rank == node.told->rank;
        });
    return is_recorded ? nullptr : &*node.told;
  }
  return nullptr;
}

}  // namespace

std::vector<Failure> failures_in(const Nodes& nodes, int round, const std::string& reason) {
  std::vector<Failure> failures;
  for (const NodeRecord& node : nodes) {
    const RoundRecord* const found = round_of(node, round);
    if (found == nullptr || !found->failure) continue;
    const Failure& failure = *found->failure;
    // All nodes of a round give up together, and say the same.
    const auto says_same = [&failure](const Failure& other) {
      return failure.given_up && failure_text(other) == failure_text(failure);
    };
    const bool is_told = std::any_of(failures.begin(), failures.end(), says_same);
    if (!is_told) failures.push_back(failure);
  }
  if (const Failure* told = told_in(nodes, round, failures)) failures.push_back(*told);
  const Failure* finding = finding_in(nodes, round);
  const auto is_named = [&reason, finding](const Failure& failure) {
    if (finding != nullptr) return failure.rank == finding->rank;
    return reason.find("rank " + std::to_string(failure.rank) + " (") != std::string::npos;
  };
  std::stable_partition(failures.begin(), failures.end(), is_named);
  return failures;
}

int last_round_of(const NodeRecord& node) {
  return node.rounds.empty() ? 0 : node.rounds.rbegin()->first;
}

const NodeRecord* with_verdict(const Nodes& nodes) {
  const auto found = std::find_if(nodes.begin(), nodes.end(), [](const NodeRecord& node) {
    return !node.verdict_text.empty();
  });
  return found == nodes.end() ? nullptr : &*found;
}

bool all_have_ended(const Nodes& nodes, int last) {
  const RoundRecord* of = any_record(nodes, last);
  const auto ended = std::count_if(nodes.begin(), nodes.end(), [last](const NodeRecord& node) {
    return node.rounds.count(last) != 0 && !node.outcome.empty();
  });
  if (of == nullptr) return nodes.size() == 1 && !nodes[0].outcome.empty();
  return ended >= of->nodes;
}

std::string reason_after(const Nodes& nodes, int round) {
  if (const RoundRecord* next = any_record(nodes, round + 1)) return next->text;
  const bool is_last = std::all_of(nodes.begin(), nodes.end(), [round](const NodeRecord& node) {
    return last_round_of(node) <= round;
  });
  if (!is_last) return "";
  if (const NodeRecord* told = with_verdict(nodes)) return told->verdict_text;
  for (const NodeRecord& node : nodes) {
    const RoundRecord* const found = round_of(node, round);
    if (found != nullptr && !found->ordered_stop.empty()) {
      return found->ordered_stop;
    }
  }
  if (!all_have_ended(nodes, round)) return "";
  for (const NodeRecord& node : nodes) {
    if (last_round_of(node) == round && !node.end_text.empty()) return node.end_text;
  }
  return "";
}

}  // namespace ddprun::explain

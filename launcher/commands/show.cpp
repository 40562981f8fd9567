// `ddprun ps` and `ddprun status`.
#include <time.h>

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <optional>

#include "base/format.hpp"
#include "launcher/commands/commands.hpp"
#include "launcher/commands/runs.hpp"

namespace ddprun::commands {

namespace {

namespace json = boost::json;

constexpr const char* kNone = "-";

/// "2026-11-22 11:02:41Z".
std::string time_text(std::int64_t wall_ms) {
  const auto seconds = static_cast<time_t>(wall_ms / 1000);
  tm parts = {};
  std::array<char, 32> text{};
  if (::gmtime_r(&seconds, &parts) == nullptr) return kNone;
  return {text.data(), ::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%SZ", &parts)};
}

const json::array& array_in(const json::object& object, const char* name) {
  static const json::array kEmpty;
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_array() ? value->get_array() : kEmpty;
}

std::string ranks_text(const json::object& status) {
  const json::array& ranks = array_in(status, "ranks");
  if (ranks.empty() || !ranks.front().is_object() || !ranks.back().is_object()) return kNone;
  const std::string first = std::to_string(number_in(ranks.front().get_object(), "rank"));
  const std::string last = std::to_string(number_in(ranks.back().get_object(), "rank"));
  return first == last ? first : first + "-" + last;
}

std::string state_text(const json::object& status) {
  const std::string state = text_in(status, "state");
  return number_in(status, "round") == 0 && state == "idle" ? "waiting for nodes" : state;
}

/// The column of `ps` is all that tells that a run without a round may continue.
std::string state_column(const json::object& status) {
  const std::string state = state_text(status);
  const bool tells = state == "running" || state == "waiting for nodes";
  return tells || text_in(status, "waits").empty() ? state : state + ", waiting";
}

std::string or_none(const std::string& text) {
  return text.empty() ? kNone : text;
}

std::vector<std::string> row_of(const FoundRun& run) {
  const json::object& status = run.status;
  if (status.empty()) {
    return {"?", kNone, kNone, "does not answer", kNone, std::to_string(run.agent()), kNone};
  }
  return {text_in(status, "run_id"),
          run.answered ? std::to_string(number_in(status, "round")) : kNone,
          ranks_text(status),
          run.answered ? state_column(status) : "does not answer",
          time_text(number_in(status, "started_ms")),
          std::to_string(number_in(status, "pid")),
          or_none(text_in(status, "command"))};
}

/// None where output does not pass through ddprun.
std::string silence_text(const json::object& rank) {
  const json::value* silent = rank.if_contains("silent_ms");
  if (silent == nullptr || !silent->is_int64()) return kNone;
  return duration_text(std::chrono::milliseconds(silent->get_int64())) + " ago";
}

/// None where the program does not use worker_api.
std::string step_text(const json::object& rank) {
  const json::value* step = rank.if_contains("step");
  if (step == nullptr || !step->is_int64()) return kNone;
  const std::chrono::milliseconds ago(number_in(rank, "step_ago_ms"));
  return std::to_string(step->get_int64()) + ", " + duration_text(ago) + " ago";
}

std::string start_text(const json::object& rank) {
  const json::value* warm = rank.if_contains("warm");
  return warm != nullptr && warm->is_bool() && warm->get_bool() ? "warm" : "cold";
}

std::string worker_table(const json::object& status) {
  std::vector<std::vector<std::string>> rows{
      {"  RANK", "LOCAL", "PID", "STATE", "START", "LAST OUTPUT", "LAST STEP"}};
  for (const json::value& value : array_in(status, "ranks")) {
    if (!value.is_object()) continue;
    const json::object& rank = value.get_object();
    const std::int64_t pid = number_in(rank, "pid");
    rows.push_back({"  " + std::to_string(number_in(rank, "rank")),
                    std::to_string(number_in(rank, "local_rank")),
                    pid == 0 ? kNone : std::to_string(pid), or_none(text_in(rank, "state")),
                    start_text(rank), silence_text(rank), step_text(rank)});
  }
  return rows.size() == 1 ? "" : in_columns(rows);
}

// Without a round no node has a part in one.
std::string node_row_ranks(const json::object& run, const json::object& node) {
  const json::value* base = node.if_contains("rank_base");
  const std::string phase = text_in(run, "phase");
  if (base == nullptr || !base->is_int64()) {
    return phase == "running" || phase == "stopping" ? "spare" : kNone;
  }
  const std::int64_t last = base->get_int64() + number_in(node, "workers") - 1;
  return std::to_string(base->get_int64()) + "-" + std::to_string(last);
}

// The coordinator does not know which ranks survive a stop that waits for the next round.
std::string node_state(const json::object& run, const json::object& node) {
  const std::string state = text_in(node, "state");
  return text_in(run, "phase") == "forming" && state == "stopping" ? "stopping or holding" : state;
}

/// Nodes that the run had, and has not any more.
std::string gone_table(const json::object& run) {
  std::vector<std::vector<std::string>> rows{{"  GONE", "ADDRESS", "RANKS", "AGO", "WHY"}};
  for (const json::value& value : array_in(run, "gone")) {
    if (!value.is_object()) continue;
    const json::object& node = value.get_object();
    const std::chrono::milliseconds ago(number_in(node, "ago_ms"));
    rows.push_back({"  " + text_in(node, "host"), text_in(node, "address"),
                    or_none(text_in(node, "ranks")), duration_text(ago), text_in(node, "why")});
  }
  return rows.size() == 1 ? "" : in_columns(rows);
}

/// Of the run that the coordinator in this ddprun decides.
std::string node_table(const json::object& status) {
  const json::value* cluster = status.if_contains("cluster");
  if (cluster == nullptr || !cluster->is_object()) return "";
  const json::array& runs = array_in(cluster->get_object(), "runs");
  if (runs.empty() || !runs.front().is_object()) return "";
  const json::object& run = runs.front().get_object();
  std::vector<std::vector<std::string>> rows{{"  NODE", "ADDRESS", "RANKS", "STATE", "SILENT FOR"}};
  for (const json::value& value : array_in(run, "nodes")) {
    if (!value.is_object()) continue;
    const json::object& node = value.get_object();
    const std::chrono::milliseconds silent(number_in(node, "silent_ms"));
    rows.push_back({"  " + text_in(node, "host"), text_in(node, "address"),
                    node_row_ranks(run, node), node_state(run, node), duration_text(silent)});
  }
  return in_columns(rows) + gone_table(run);
}

std::string coordinator_line(const json::object& status) {
  const std::string coordinator = text_in(status, "coordinator");
  if (coordinator.empty()) return "";
  const bool here = !node_table(status).empty();
  return "  coordinator  " + coordinator +
         (here ? " (this node)\n" : " (ask there for the other nodes)\n");
}

std::string wait_line(const json::object& status) {
  const std::string waits = text_in(status, "waits");
  return waits.empty() ? "" : "  waits        " + waits + "\n";
}

std::string status_text(const json::object& status) {
  const std::chrono::milliseconds age(number_in(status, "age_ms"));
  const std::chrono::milliseconds in_state(number_in(status, "state_ms"));
  std::string text = "run " + text_in(status, "run_id") + " round " +
                     std::to_string(number_in(status, "round")) + ": " + state_text(status) +
                     " on " + text_in(status, "host") + ", for " + duration_text(in_state) + ", " +
                     std::to_string(number_in(status, "restarts")) + " of " +
                     count_text(number_in(status, "max_restarts"), "restart") + " used\n";
  text += "  pid          " + std::to_string(number_in(status, "pid")) + "\n";
  text += "  started      " + time_text(number_in(status, "started_ms")) + ", " +
          duration_text(age) + " ago\n";
  text += wait_line(status);
  text += "  command      " + or_none(text_in(status, "command")) + "\n";
  text += coordinator_line(status);
  text += "  store        " + or_none(text_in(status, "store")) + "\n";
  text += "  logs         " + or_none(text_in(status, "log_dir")) + "\n";
  return text + worker_table(status) + node_table(status);
}

}  // namespace

int ps(const Arguments& arguments, const Environment& environment) {
  if (!arguments.empty()) return misuse("ddprun ps takes no arguments");
  std::vector<std::vector<std::string>> rows{
      {"RUN", "ROUND", "RANKS", "STATE", "SINCE", "PID", "COMMAND"}};
  for (const FoundRun& run : find_runs(environment)) rows.push_back(row_of(run));
  return print(in_columns(rows));
}

int status(const Arguments& arguments, const Environment& environment) {
  std::vector<std::string> names;
  bool as_json = false;
  for (const std::string& word : arguments) {
    if (word == "--json") {
      as_json = true;
    } else {
      names.push_back(word);
    }
  }
  if (names.size() != 1) return misuse("ddprun status takes one run: ddprun status RUN [--json]");
  const auto run = find_run(names.front(), environment);
  if (!run) return fail(run.error().sentence);
  if (!run->answered) return fail_silent(*run, names.front());
  return print(as_json ? json::serialize(run->status) + "\n" : status_text(run->status));
}

}  // namespace ddprun::commands

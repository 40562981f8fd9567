// events.jsonl and result.json of real runs, against docs/EVENTS.md.
#include <signal.h>

#include <boost/json/parse.hpp>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "base/exit_status.hpp"
#include "tests/agent/cluster.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

std::vector<std::string> lines_in(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells;
  for (std::size_t at = 2, end = 0; at < row.size(); at = end + 2) {
    end = row.find('|', at);
    cells.push_back(row.substr(at, end - at));
  }
  return cells;
}

/// What stands between backquotes.
std::vector<std::string> names_in(const std::string& cell) {
  std::vector<std::string> names;
  for (auto at = cell.find('`'); at != std::string::npos; at = cell.find('`', at + 1)) {
    const auto end = cell.find('`', at + 1);
    names.push_back(cell.substr(at + 1, end - at - 1));
    at = end;
  }
  return names;
}

/// The tables of the page.
struct Schema {
  std::vector<std::string> common;                         // of every line, in order
  std::map<std::string, std::vector<std::string>> events;  // a field that may be missing ends in ?
  std::map<std::string, std::string> types;

  Schema() {
    bool of_every_line = true;
    std::string head;
    for (const std::string& line : lines_in(content(EVENTS_PAGE))) {
      if (line.starts_with("| field ") || line.starts_with("| event ") ||
          line.starts_with("| file ") || line.starts_with("| object ")) {
        head = line.substr(0, 6);
      }
      if (line.empty() && head != "") of_every_line = false;
      if (!line.starts_with("| `")) continue;
      const auto cells = cells_of(line);
      const std::string name = names_in(cells[0]).front();
      if (head == "| fiel") {
        if (of_every_line) common.push_back(name);
        types[name] = cells[1].substr(0, cells[1].find(' '));
      } else {
        events[name] = names_in(cells[1]);
      }
    }
  }

  [[nodiscard]] static std::string type_of(const json::value& value) {
    if (value.is_number()) return "number";
    if (value.is_string()) return "text";
    if (value.is_bool()) return "flag";
    if (value.is_array()) return "list";
    return value.is_object() ? "object" : "none";
  }

  /// Checks the members of `object` from the `first` on, and theirs if they have a row of their
  /// own.
  void check(const std::string& event, const json::object& object, std::size_t first) const {
    INFO(event);
    REQUIRE(events.count(event) == 1);
    std::set<std::string> expected;
    for (std::string name : events.at(event)) {
      const bool optional = name.ends_with('?');
      if (optional) name.pop_back();
      if (!optional || object.contains(name)) expected.insert(name);
    }
    std::set<std::string> found;
    for (std::size_t i = first; i < object.size(); ++i) {
      const auto& member = *(object.begin() + static_cast<std::ptrdiff_t>(i));
      found.insert(std::string(member.key()));
      INFO(member.key());
      const std::string name(member.key());
      REQUIRE(types.count(name) == 1);
      CHECK(type_of(member.value()) == types.at(name));
      if (member.value().is_object() && events.count(name) == 1) {
        check(name, member.value().as_object(), 0);
      }
    }
    CHECK(found == expected);
  }
};

struct Recorded {
  std::vector<json::object> events;
  json::object result;
  /// Without what a busy machine adds.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& event : events) {
      if (event.at("event") != "slow_turn") names.emplace_back(event.at("event").as_string());
    }
    return names;
  }
  [[nodiscard]] const json::object& last(const std::string& name) const {
    for (auto event = events.rbegin(); event != events.rend(); ++event) {
      if (event->at("event").as_string() == name) return *event;
    }
    FAIL("no event " + name);
    return events.front();
  }
};

/// Reads the files of the one run in `dir`, and checks them against the page.
Recorded read_checked(const std::string& dir, std::set<std::string>* seen = nullptr) {
  static const Schema schema;
  REQUIRE(fs::exists(dir));
  const std::string folder = fs::directory_iterator(dir)->path().string();
  Recorded all;
  double before = 0;
  for (const std::string& line : lines_in(content(folder + "/events.jsonl"))) {
    const json::object event = json::parse(line).as_object();
    for (std::size_t i = 0; i < schema.common.size(); ++i) {
      const auto& member = *(event.begin() + static_cast<std::ptrdiff_t>(i));
      CHECK(member.key() == schema.common[i]);
      CHECK(Schema::type_of(member.value()) == schema.types.at(schema.common[i]));
    }
    schema.check(std::string(event.at("event").as_string()), event, schema.common.size());
    CHECK(event.at("n").as_int64() == static_cast<std::int64_t>(all.events.size()) + 1);
    CHECK(event.at("ms").as_double() >= before);
    before = event.at("ms").as_double();
    if (seen != nullptr) seen->insert(std::string(event.at("event").as_string()));
    all.events.push_back(event);
  }
  all.result = json::parse(content(folder + "/result.json")).as_object();
  schema.check("result.json", all.result, 0);
  CHECK(folder.starts_with(std::string(all.result.at("log_dir").as_string())));
  return all;
}

}  // namespace

TEST_CASE("the events of a run with a restart tell it from start to end, as documented") {
  TemporaryDirectory dir;
  auto run =
      start(2,
            "[ $RANK = 1 ] || { trap '' TERM; " + kAnnounce +
                "while :; do sleep 0.1; done; }; while ! [ -s $DIR/0.$DDPRUN_ROUND ]; do "
                "[ -s $DIR/0.$TORCHELASTIC_RESTART_COUNT ] && exit 7; sleep 0.01; done",
            {"restarts=1", "timeout_ms=100", "log=" + dir.file("logs")}, {{"DIR", dir.path()}});
  CHECK(run.wait() == ExitStatus::exited(7));
  const Recorded all = read_checked(dir.file("logs"));
  std::vector<std::string> round = {
      "round",      "worker_started", "worker_started", "all_running",   "worker_exited",
      "stop_began", "first_failure",  "kill_began",     "worker_exited", "round_ended"};
  const auto names = all.names();
  CHECK(names.front() == "start");
  CHECK(names.back() == "end");
  for (int number : {1, 2}) {
    std::vector<std::string> of_round;
    for (const auto& event : all.events) {
      if (event.at("round").as_int64() != number) continue;
      const std::string name(event.at("event").as_string());
      if (std::find(round.begin(), round.end(), name) != round.end()) of_round.push_back(name);
    }
    CHECK(of_round == round);
    std::swap(round[5], round[6]);  // of the last one: the other rank has the failure grace
  }
  CHECK(all.result.at("failure").at("spared_ms").as_int64() >= 1000);
  CHECK(all.last("round").at("cause").as_string() == "restart");
  CHECK(all.last("first_failure").at("code").as_string() == "W-EXIT");
  CHECK(all.last("first_failure").at("exit").at("rank").as_int64() == 1);
  CHECK(all.last("worker_exited").at("sent_signal").as_int64() == SIGTERM);
  CHECK(all.last("round_ended").at("killed").as_int64() == 1);
  CHECK(all.last("cleanup").at("workers").as_int64() == 1);
}

TEST_CASE("result.json has outcome, code, first failure and restarts of a run that failed") {
  TemporaryDirectory dir;
  auto run = start(1, "echo needle >&2; exit 3", {"restarts=1", "log=" + dir.file("logs")});
  CHECK(run.wait() == ExitStatus::exited(3));
  const json::object result = read_checked(dir.file("logs")).result;
  CHECK(result.at("outcome").as_string() == "failed");
  CHECK(result.at("exit_code").as_int64() == 3);
  CHECK(result.at("restarts").as_int64() == 1);
  CHECK(result.at("rounds").as_int64() == 2);
  CHECK(result.at("coordinator").as_bool());
  const json::object& failure = result.at("failure").as_object();
  CHECK(failure.at("code").as_string() == "W-EXIT");
  CHECK(failure.at("first").at("lines").at(0).as_string() == "needle");
}

TEST_CASE("result.json and the verdict name the culprit where the first failure is a witness") {
  TemporaryDirectory dir;
  const std::string script =
      "[ $RANK = 1 ] && { echo > $DIR/here; kill -STOP $$$$; }; "
      "until [ -s $DIR/here ]; do sleep 0.01; done; "
      "echo '[../gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 4000ms for recv "
      "operation to complete' >&2; exit 3";
  auto run = start(2, script, {"log=" + dir.file("logs")}, {{"DIR", dir.path()}});
  CHECK(run.wait() == ExitStatus::exited(3));
  const Recorded all = read_checked(dir.file("logs"));
  for (const json::value& failure : {all.result.at("failure"), all.last("verdict").at("failure")}) {
    CHECK(failure.at("first").at("rank").as_int64() == 0);
    REQUIRE(failure.as_object().contains("finding"));
    const json::value& finding = failure.at("finding");
    CHECK(finding.at("ranks").as_array() == json::array{1});
    CHECK(finding.at("code") == failure.at("code"));
    CHECK_THAT(std::string(finding.at("text").as_string()), ContainsSubstring("; rank 1 (local 1"));
  }
}

TEST_CASE("a run that a signal stops, and one that succeeds, say so in result.json") {
  TemporaryDirectory dir;
  // The worker gets the SIGUSR1 as well: it must not die of it before the SIGTERM comes.
  auto stopped =
      start(1, "trap '' USR1; " + kStay, {"log=" + dir.file("stopped")}, {{"DIR", dir.path()}});
  (void)pid_in(dir.file("0.0"));
  stopped.signal(SIGUSR1);
  stopped.signal(SIGTERM);
  CHECK(stopped.wait() == ExitStatus::exited(143));
  const Recorded all = read_checked(dir.file("stopped"));
  CHECK(all.result.at("outcome").as_string() == "stopped");
  CHECK(all.last("signal").at("name").as_string() == "SIGTERM");
  auto good = start(1, "true", {"log=" + dir.file("good")});
  CHECK(good.wait() == ExitStatus::exited(0));
  CHECK(read_checked(dir.file("good")).result.at("outcome").as_string() == "succeeded");
}

TEST_CASE("the events of a run that ddprun gives up say why, with the code it ends with") {
  TemporaryDirectory dir;
  auto run =
      start(2, "[ $RANK = 0 ] || exec sleep 1000", {"finish_ms=100", "log=" + dir.file("logs")});
  CHECK(run.wait() == ExitStatus::exited(kExitFinishTimeout));
  const Recorded all = read_checked(dir.file("logs"));
  CHECK(all.last("gave_up").at("exit_code").as_int64() == kExitFinishTimeout);
  CHECK_FALSE(all.last("gave_up").at("text").as_string().empty());
}

TEST_CASE("the nodes of a run record its rounds and its verdict, each in its own words") {
  Cluster cluster;
  const std::string script =
      "echo > $DIR/here.$RANK; [ $RANK = 1 ] || exec sleep 1000; "
      "while ! [ -e $DIR/here.0 ]; do sleep 0.01; done; exit 5";
  auto& first = cluster.start(1, "2:2", script, {"node_rank=0", "log=" + cluster.file("log0")});
  auto& second = cluster.start(1, "2:2", script, {"node_rank=1", "log=" + cluster.file("log1")});
  CHECK(first.wait() == ExitStatus::exited(5));
  CHECK(second.wait() == ExitStatus::exited(5));
  const Recorded here = read_checked(cluster.file("log0"));
  const Recorded there = read_checked(cluster.file("log1"));
  CHECK(here.last("round").at("node").as_int64() == 0);
  CHECK(there.last("round").at("node").as_int64() == 1);
  for (const Recorded* node : {&here, &there}) {
    CHECK(node->last("round").at("cause").as_string() == "first");
    CHECK(node->last("stop_ordered").at("signal").as_int64() == SIGTERM);
    CHECK(node->last("verdict").at("failure").at("first").at("rank").as_int64() == 1);
    CHECK(node->result.at("failure").at("first").at("rank").as_int64() == 1);
    CHECK(node->result.at("exit_code").as_int64() == 5);
  }
  CHECK(there.last("first_failure").at("code").as_string() == "W-EXIT");
}

TEST_CASE("events and result stay in a temporary directory that stays, and nothing stays else") {
  TemporaryDirectory tmp;
  auto fails = start(1, "echo > $TORCHELASTIC_ERROR_FILE; exit 1", {}, {{"TMPDIR", tmp.path()}});
  CHECK(fails.wait() == ExitStatus::exited(1));
  const auto stays = fs::directory_iterator(tmp.path());
  REQUIRE(stays != fs::directory_iterator());
  const Recorded all = read_checked(stays->path().string());
  CHECK(all.names().front() == "start");
  CHECK(all.names().back() == "end");
  fs::remove_all(stays->path());
  auto quiet = start(1, "exit 1", {}, {{"TMPDIR", tmp.path()}});
  CHECK(quiet.wait() == ExitStatus::exited(1));
  CHECK(tmp.entries().empty());
}

TEST_CASE("a node that never had a round leaves its events in the directory it was given") {
  TemporaryDirectory dir;
  auto run = start(1, "true",
                   {"rdzv=" + std::to_string(free_port()), "nodes=2:2", "join_ms=100",
                    "log=" + dir.file("logs")});
  CHECK(run.wait() == ExitStatus::exited(kExitJoinTimeout));
  const Recorded all = read_checked(dir.file("logs"));
  CHECK(all.result.at("outcome").as_string() == "error");
  CHECK(all.names() == std::vector<std::string>{"start", "end"});
}

TEST_CASE("a log disk without room costs events, is told once, and the run continues") {
  TemporaryDirectory dir;
  // The limit on the size of files stands for the disk; the consoles are pipes.
  auto run = Command(
      {"sh", "-c", "(ulimit -f 0; trap '' XFSZ; \"$@\"; echo ended with $?) 2>&1 | cat", "sh",
       AGENT_DRIVER, "1", "log=" + dir.file("logs"), "restarts=2", "--", "sh", "-c", "exit 4"});
  CHECK(run.wait() == ExitStatus::exited(0));
  CHECK_THAT(run.out(), ContainsSubstring("ended with 4"));
  CHECK(count(run.out(), "events.jsonl: ") == 1);
}

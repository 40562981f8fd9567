// A daemon that is started again: who may join its runs before their members are back.
#include "rendezvous/coordinator/live_runs.hpp"

#include <sys/stat.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "tests/coordinator/live.hpp"
#include "tests/support/temp_dir.hpp"

using namespace ddprun;
using namespace ddprun::coordinator;
using protocol::NodeState;

namespace {

std::string content_of_state(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Nodes "a" and "b" of run "run" have their first round; returns what they know of it.
std::vector<protocol::StartRound> begin_run(const std::string& file) {
  LiveCoordinator before({}, file);
  Agent first(before.port(), hello_of("run", "a", 2));
  Agent second(before.port(), hello_of("run", "b", 2));
  std::vector<protocol::StartRound> told{first.start_round(), second.start_round()};
  CHECK(eventually([&] { return content_of_state(file).find("\"run\"") != std::string::npos; }));
  before.close();
  return told;
}

protocol::Hello member(const protocol::StartRound& told) {
  auto hello = hello_of("run", told.group_rank == 0 ? "a" : "b", 2);
  hello.claim = protocol::Claim{told.stamp, told.group_rank, told.group_size, told.restarts,
                                NodeState::kRunning};
  return hello;
}

}  // namespace

TEST_CASE("after a restart of the daemon the members of a run precede strangers") {
  const TempDir folder;
  const std::string file = folder / "runs.json";
  const auto told = begin_run(file);
  LiveCoordinator after({}, file);
  auto other_terms = hello_of("run", "stranger", 1);  // its round would begin at once
  other_terms.terms.nodes_max = 1;
  CHECK(Agent(after.port(), other_terms).closed());
  auto same_terms = hello_of("run", "stranger", 2);
  same_terms.node_rank = 0;
  CHECK(Agent(after.port(), same_terms).closed());
  same_terms.claim = protocol::Claim{
      {told[0].stamp.number, "guessed"}, 0, 2, RestartCount(0), NodeState::kRunning};
  CHECK(Agent(after.port(), same_terms).closed());
  {
    Agent first(after.port(), member(told[0]));
    first.await<protocol::Waiting>();
    CHECK(Agent(after.port(), same_terms).closed());
    Agent second(after.port(), member(told[1]));
    first.report(told[0], NodeState::kSucceeded);
    second.report(told[1], NodeState::kSucceeded);
    CHECK(first.await<protocol::Done>().exit_code == 0);
    CHECK(second.await<protocol::Done>().exit_code == 0);
  }
  CHECK_THAT(after.log(), ContainsSubstring("had a round: its nodes have 5 s"));
  CHECK(eventually([&] { return !std::filesystem::exists(file); }));
}

TEST_CASE("members are known after each restart, also of a round whose author is not in the file") {
  const TempDir folder;
  const std::string file = folder / "runs.json";
  const auto told = begin_run(file);
  const std::string kept = content_of_state(file);
  for (const bool is_lost : {true, false}) {
    if (is_lost) std::filesystem::remove(file);
    LiveCoordinator again({}, file);
    const Agent first(again.port(), member(told[0]));
    const Agent second(again.port(), member(told[1]));
    CHECK(eventually([&] { return again.log().find("the round continues") != std::string::npos; }));
    CHECK(eventually([&] { return content_of_state(file) == kept; }));
  }
}

TEST_CASE("a stranger that comes after the wait and leaves does not end what is known of a run") {
  const TempDir folder;
  const std::string file = folder / "runs.json";
  begin_run(file);
  const std::string kept = content_of_state(file);
  LiveCoordinator after({}, file);
  CHECK(eventually([&] {  // after the wait
    Agent stranger(after.port(), hello_of("run", "stranger", 3));
    return stranger.try_next().has_value();
  }));
  Agent other(after.port(), hello_of("other", "a", 1));
  other.start_round();
  CHECK(eventually([&] { return content_of_state(file).find("other") != std::string::npos; }));
  CHECK_THAT(content_of_state(file), ContainsSubstring("\"run\""));
}

TEST_CASE("a member that comes after the wait has its run back from one that a stranger began") {
  const TempDir folder;
  const std::string file = folder / "runs.json";
  const auto told = begin_run(file);
  LiveCoordinator after({}, file);
  std::unique_ptr<Agent> stranger;
  CHECK(eventually([&] {
    stranger = std::make_unique<Agent>(after.port(), hello_of("run", "stranger", 3));
    return stranger->try_next().has_value();
  }));
  const Agent first(after.port(), member(told[0]));
  const Agent second(after.port(), member(told[1]));
  CHECK(eventually([&] { return after.log().find("the round continues") != std::string::npos; }));
  CHECK(stranger->closed());
}

TEST_CASE("a run whose links all broke is kept for its members, and not told to a stranger") {
  LiveCoordinator coordinator;
  std::vector<protocol::StartRound> told;
  {
    Agent first(coordinator.port(), hello_of("run", "a", 2));
    Agent second(coordinator.port(), hello_of("run", "b", 2));
    told = {first.start_round(), second.start_round()};
  }
  auto other_terms = hello_of("run", "stranger", 1);
  other_terms.terms.nodes_max = 1;
  CHECK(eventually([&] {  // when both are lost
    CHECK(Agent(coordinator.port(), other_terms).closed());
    return coordinator.log().find("to come back before others join") != std::string::npos;
  }));
  const Agent first(coordinator.port(), member(told[0]));
  const Agent second(coordinator.port(), member(told[1]));
  CHECK(eventually(
      [&] { return coordinator.log().find("the round continues") != std::string::npos; }));
}

TEST_CASE("where there are as many runs as can be, the members of a known one are served") {
  const TempDir folder;
  const std::string file = folder / "runs.json";
  const auto told = begin_run(file);
  ServerOptions options;
  options.limits.runs = 1;
  LiveCoordinator after(std::move(options), file);
  Agent stranger(after.port(), hello_of("other", "a", 2));
  stranger.await<protocol::Waiting>();
  Agent first(after.port(), member(told[0]));
  first.await<protocol::Waiting>();
}

TEST_CASE("what waits for its time is written as the process ends") {
  const TempDir folder;
  const std::string file = folder / "runs.json";
  boost::asio::io_context io;
  const auto runs =
      std::make_shared<LiveRuns>(file, DiskThread(io.get_executor()), [](const std::string&) {});
  for (int run = 0; run <= 2 * kSavesAtOnce; ++run) {
    runs->keep(RunId("run-" + std::to_string(run)), "lineage");
    io.restart();
    io.poll();
  }
  runs->hurry();
  const std::string last = "run-" + std::to_string(2 * kSavesAtOnce) + "\"";
  CHECK(eventually([&] {
    io.restart();
    io.poll();
    return content_of_state(file).find(last) != std::string::npos;
  }));
}

TEST_CASE("a run that has no round, or has ended, is not kept for its members") {
  const TempDir folder;
  const std::string file = folder / "runs.json";
  {
    LiveCoordinator before({}, file);
    Agent waits(before.port(), hello_of("run", "a", 2));
    waits.await<protocol::Waiting>();
  }
  CHECK_FALSE(std::filesystem::exists(file));
  LiveCoordinator after({}, file);
  Agent waits(after.port(), hello_of("run", "a", 2));
  CHECK(waits.await<protocol::Waiting>().here == 1);
}

TEST_CASE("a file of runs that is damaged, exposed or not there names none") {
  const TempDir folder;
  const std::string file = folder / "runs.json";
  begin_run(file);
  std::string why;
  const auto joins = [&] {
    LiveCoordinator after({}, file);
    Agent agent(after.port(), hello_of("run", "c", 2));
    const bool joined = agent.await<protocol::Waiting>().here == 1;
    why = after.log();
    return joined;
  };
  ::chmod(file.c_str(), 0622);
  CHECK(joins());
  CHECK_THAT(why, ContainsSubstring("run chmod 600 on it"));
  ::chmod(file.c_str(), 0600);
  std::filesystem::rename(file, folder / "elsewhere");
  std::filesystem::create_symlink(folder / "elsewhere", file);
  CHECK(joins());
  CHECK_THAT(why, ContainsSubstring("runs before this start are not known"));
  std::filesystem::remove(file);
  CHECK(joins());
  for (const char* text : {"{", "[]", "{\"runs\":1}"}) {
    std::ofstream(file) << text;
    ::chmod(file.c_str(), 0600);
    CHECK(joins());
    CHECK_THAT(why, ContainsSubstring("is damaged"));
  }
}

TEST_CASE("a file of runs that cannot be written is warned about once, and runs begin") {
  const TempDir folder;
  std::ofstream(folder / "file") << "in the way";
  LiveCoordinator coordinator({}, folder / "file" + "/runs.json");
  for (const char* run : {"x", "y"}) {
    Agent agent(coordinator.port(), hello_of(run, "a", 1));
    agent.start_round();
  }
  const auto warned = [&] {
    const std::string log = coordinator.log();
    const auto first = log.find("cannot keep which runs there are in");
    return first != std::string::npos && log.find("cannot keep", first + 1) == std::string::npos;
  };
  CHECK(eventually(warned));
}

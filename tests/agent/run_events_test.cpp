// Events that the agent makes of what it learns, without a run.
#include "agent/events/run_events.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "agent/events/events.hpp"
#include "base/exit_status.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace std::chrono_literals;

namespace {

client::Event start_of(int number, int nodes, const std::string& reason) {
  protocol::StartRound start;
  start.stamp.number = Round(number);
  start.group_size = nodes;
  start.reason = reason;
  return client::Incoming{1, start};
}

std::vector<std::string> names(const std::vector<RunEvent>& events) {
  std::vector<std::string> all;
  for (const RunEvent& event : events) all.emplace_back(event.name);
  return all;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("the loss of nodes is an event of its own, of the round that lost them") {
  LinkEvents events;
  CHECK(names(events.of(start_of(1, 3, "all 3 nodes joined"))) == Names{"round"});
  const auto lost = events.of(start_of(2, 2, "lost gpu-07"));
  REQUIRE(names(lost) == Names{"node_lost", "round"});
  CHECK(lost[0].round == Round(1));
  CHECK(lost[0].fields.at("lost").as_int64() == 1);
  CHECK(lost[0].fields.at("nodes").as_int64() == 2);
  CHECK(lost[0].fields.at("text").as_string() == "lost gpu-07");
  // The same message once more, and a round with more nodes.
  CHECK(events.of(start_of(2, 2, "lost gpu-07")).empty());
  CHECK(names(events.of(start_of(3, 3, "gpu-08 joined"))) == Names{"round"});
}

TEST_CASE("a verdict that a node is missing is its loss, too, whatever the exit code") {
  LinkEvents events;
  (void)events.of(start_of(1, 2, "all 2 nodes joined"));
  protocol::Done done{143, "gpu-07 leaves"};
  done.node_lost = true;
  const auto over = events.of(client::Incoming{1, done});
  REQUIRE(names(over) == Names{"node_lost", "verdict"});
  CHECK(over[0].fields.at("text").as_string() == "gpu-07 leaves");
  const protocol::Done of_worker{kExitNodeLost, "rank 3 failed"};
  CHECK(names(events.of(client::Incoming{1, of_worker})) == Names{"verdict"});
}

TEST_CASE("a full disk of the events is a warning before the report, and none behind it") {
  for (const bool told : {false, true}) {
    boost::asio::io_context io;
    DiskThread disk(io.get_executor());
    std::vector<std::string> warnings;
    EventLog events(EventLog::Options(),
                    [&](const std::string& text) { warnings.push_back(text); });
    auto file = LogFile::open("/dev/full", disk);
    REQUIRE(file.has_value());
    events.write_to(std::move(*file));
    events.record({"end", Round(1), {}});
    if (told) events.report_is_told();
    boost::asio::co_spawn(io, disk.idle(Clock::now() + 60s), boost::asio::detached);
    io.run();
    REQUIRE(warnings.size() == std::size_t(told ? 0 : 1));
    if (!told) CHECK_THAT(warnings[0], !ContainsSubstring("the run continues"));
  }
}

TEST_CASE("what was ended with a round is an event, and names what SIGKILL did not end") {
  RoundResult result;
  CHECK_FALSE(cleanup_event(Round(2), result));
  result.stopped = 8;
  result.descendants = 64;
  result.stop_took = 900ms;
  auto event = cleanup_event(Round(2), result);
  REQUIRE(event);
  CHECK(event->round == Round(2));
  CHECK(event->fields.at("workers").as_int64() == 8);
  CHECK(event->fields.at("descendants").as_int64() == 64);
  CHECK(event->fields.at("still_alive").as_int64() == 0);
  CHECK(event->fields.at("took_ms").as_int64() == 900);
  CHECK_FALSE(event->fields.contains("text"));
  result.unkillable.push_back({{Rank(2), LocalRank(2), 6612, "gpu-04"}, "", {}});
  result.unkillable.push_back({{Rank(3), LocalRank(3), 6613, "gpu-04"}, "2 processes (sh)", {}});
  event = cleanup_event(Round(2), result);
  CHECK(event->fields.at("still_alive").as_int64() == 2);
  CHECK(event->fields.at("text").as_string() ==
        "rank 2 (local 2, pid 6612) on gpu-04, 2 processes (sh) of rank 3 (local 3, pid 6613) on "
        "gpu-04");
}

TEST_CASE("the path of a checkpoint takes a bounded part of the file, whatever is in it") {
  const auto written = [](const std::string& path) {
    const RunEvent event = checkpoint_event(Round(1), Rank(0), 7, path);
    return std::string(event.fields.at("path").as_string());
  };
  CHECK(written("/saved/7") == "/saved/7");
  CHECK(written(std::string(1024, 'x')) == std::string(1024, 'x'));
  CHECK(written(std::string(4096, 'x')) == std::string(1024, 'x') + " ...");
  CHECK(written(std::string(4096, '\x1b')) == std::string(170, '\x1b') + " ...");
}

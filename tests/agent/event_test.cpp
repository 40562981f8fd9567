// A line of events.jsonl.
#include "agent/events/event.hpp"

#include <boost/json/parse.hpp>

#include "tests/support/catch.hpp"

using namespace ddprun;

namespace json = boost::json;

namespace {

// 2026-11-22T11:02:41.118Z
const EventStamp kStamp{7, WallTime(std::chrono::milliseconds(1795345361118)),
                        std::chrono::microseconds(1234567), "7f3a", "gpu-01"};

}  // namespace

TEST_CASE("an event is one line: number, times, run, host, round, name, then its fields") {
  CHECK(event_line({"link_lost", Round(3), {{"text", "closed"}}}, kStamp) ==
        R"({"n":7,"time":"2026-11-22T11:02:41.118Z","ms":1234.567,"run":"7f3a","host":"gpu-01",)"
        R"("round":3,"event":"link_lost","text":"closed"})"
        "\n");
  CHECK(event_line({"link_up", {}, {}}, kStamp)
            .ends_with(R"("round":0,"event":"link_up"})"
                       "\n"));
}

TEST_CASE("no text of an event can forge a line, break its JSON or grow without bound") {
  EventStamp stamp = kStamp;
  stamp.host = "a\nb\xff\"";
  const std::string long_text(kEventTextBytesMax + 1, 'x');
  const json::object inner{{"lines", json::array{"\x80\n{\"event\":\"end\"}", long_text}}};
  const std::string line = event_line({"first_failure", Round(1), {{"exit", inner}}}, stamp);
  CHECK(line.find('\n') == line.size() - 1);
  CHECK(line.size() < 2 * kEventTextBytesMax);
  boost::system::error_code failed;
  const json::value read = json::parse(line, failed);
  REQUIRE_FALSE(failed);
  CHECK(read.at("host").as_string() == "a\nb\xEF\xBF\xBD\"");
}

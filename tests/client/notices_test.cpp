// When a wait is worth a line, and how often.
#include "rendezvous/client/membership/notices.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::client;
using std::chrono::seconds;

namespace {

const TimePoint kBegin{seconds(100)};

std::vector<std::string> lines(const Actions& actions) {
  std::vector<std::string> all;
  for (const Action& action : actions) all.push_back(std::get<Note>(action).text);
  return all;
}

}  // namespace

TEST_CASE("no line twice in a row, and none without text") {
  Notices notices;
  Actions actions;
  for (const char* text : {"a", "a", "", "b", "a"}) notices.note(text, actions);
  CHECK(lines(actions) == std::vector<std::string>{"a", "b", "a"});
}

TEST_CASE("a wait is noted after three seconds, with its end and the option that sets it") {
  Notices notices;
  Actions actions;
  notices.wait_for(Wait{"waiting", "gives up", "join_timeout", kBegin + seconds(10)}, kBegin,
                   actions);
  CHECK(notices.due() == kBegin + kQuietMax);
  notices.note_wait_if_due(kBegin + seconds(2), actions);
  CHECK(actions.empty());
  notices.note_wait_if_due(kBegin + kQuietMax, actions);
  CHECK(lines(actions) ==
        std::vector<std::string>{"waiting; gives up in 7 s (--rdzv-conf join_timeout)"});
  CHECK_FALSE(notices.due());
}

TEST_CASE("what is waited for is known for as long as it is, also once it was noted") {
  Notices notices;
  Actions actions;
  CHECK(notices.present(kBegin).empty());
  notices.wait_for(Wait{"waiting", "gives up", "join_timeout", kBegin + seconds(10)}, kBegin,
                   actions);
  CHECK(notices.present(kBegin) == "waiting; gives up in 10 s (--rdzv-conf join_timeout)");
  notices.note_wait_if_due(kBegin + kQuietMax, actions);
  CHECK(notices.present(kBegin + seconds(4)) ==
        "waiting; gives up in 6 s (--rdzv-conf join_timeout)");
  notices.end_waiting();
  CHECK(notices.present(kBegin + seconds(5)).empty());
}

TEST_CASE("waits that replace each other count as one, and a wait that has ended is not noted") {
  Notices notices;
  Actions actions;
  notices.wait_for(Wait{"first"}, kBegin, actions);
  notices.wait_for(Wait{"second"}, kBegin + seconds(3), actions);
  CHECK(lines(actions) == std::vector<std::string>{"second"});
  notices.wait_for(Wait{"third"}, kBegin + seconds(2), actions);
  notices.end_wait();
  CHECK_FALSE(notices.due());
  notices.end_waiting();
  notices.wait_for(Wait{"fourth"}, kBegin + seconds(5), actions);
  CHECK(notices.due() == kBegin + seconds(8));
}

TEST_CASE("a wait is noted once, again only after the coordinator has answered") {
  Notices notices;
  Actions actions;
  const TimePoint late = kBegin + seconds(5);
  notices.wait_for(Wait{"first"}, kBegin, actions);
  for (const char* text : {"first", "second", "first", "second"}) {
    notices.wait_for(Wait{text}, late, actions);
  }
  CHECK(lines(actions) == std::vector<std::string>{"first", "second"});
  notices.repeat_waits();
  notices.wait_for(Wait{"first"}, late, actions);
  CHECK(lines(actions).back() == "first");
}

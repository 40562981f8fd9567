// What is kept while a coordinator may not act, and what a run makes of it.
#include "rendezvous/coordinator/held.hpp"

#include "tests/round/desk.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::coordinator;
using namespace ddprun::protocol;
using round::Desk;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

round::Received said(std::uint64_t link, Message message) {
  return {round::LinkId(link), {}, std::move(message)};
}

std::uint64_t link_of(const round::Event& event) {
  return std::get<round::Received>(event).link.value();
}

}  // namespace

TEST_CASE("of the heartbeats of an agent the last one is kept, in its place") {
  Held<int> held;
  held.push(0, said(1, Beat{}));
  held.push(0, said(2, Beat{}));
  held.push(0, said(2, Stopped{Round(1)}));
  held.push(0, said(1, Beat{}));
  CHECK(held.size() == 1);
  const auto all = held.take();
  REQUIRE(all.size() == 3);
  CHECK(link_of(all.front().second) == 2);
  CHECK(std::holds_alternative<Beat>(std::get<round::Received>(all.front().second).message));
  CHECK(link_of(all.back().second) == 1);
  CHECK(held.empty());
}

TEST_CASE("what asks for an answer is kept each time") {
  Held<int> held;
  held.push(0, said(1, Beat{3}));
  held.push(0, said(1, Beat{4}));
  CHECK(held.size() == 2);
}

TEST_CASE("with a silence limit of two heartbeats nodes that live are not lost by an outage") {
  const int attempts = GENERATE(2, 3);
  CAPTURE(attempts);
  Desk desk;
  for (const auto& [link, host] : {std::pair(1, "a"), std::pair(2, "b")}) {
    Hello hello = desk.hello(host, 2, 2);
    hello.terms.keep_alive_interval = milliseconds(1000);
    hello.terms.keep_alive_max_attempt = attempts;
    desk.say(static_cast<std::uint64_t>(link), hello);
  }
  desk.both_run();
  const TimePoint heard = desk.now_;
  desk.after(milliseconds(990));
  Held<int> held;  // from here on the coordinator may not act
  for (const std::uint64_t link : {1U, 2U}) held.push(0, said(link, Beat{}));
  desk.now_ = heard + seconds(attempts);
  for (const auto& [entry, event] : held.take()) {
    desk.say(link_of(event), std::get<round::Received>(event).message);
  }
  desk.stall(seconds(0));
  CHECK(desk.run_.phase() == round::Phase::kRunning);
  CHECK(desk.run_.status(desk.now_).nodes.size() == 2);
}

// The stores of one node: which are open, and until when.
#include "rendezvous/client/membership/states.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::client;
using std::chrono::seconds;

namespace {

const TimePoint kFirstEnd{seconds(100)};

/// "close 1, close 2".
std::string orders(const Actions& actions) {
  std::string all;
  for (const Action& action : actions) {
    if (!all.empty()) all += ", ";
    if (std::holds_alternative<OpenStore>(action)) all += "open";
    if (const auto* serve = std::get_if<ServeStore>(&action)) {
      all += "serve " + std::to_string(serve->round.value());
    }
    if (const auto* release = std::get_if<ReleaseStore>(&action)) {
      all += "release " + std::to_string(release->round.value());
    }
    if (const auto* close = std::get_if<CloseStore>(&action)) {
      all += "close " + std::to_string(close->round.value());
    }
  }
  return all;
}

protocol::StartRound round_number(int number) {
  protocol::StartRound round;
  round.stamp.number = Round(number);
  round.store_peers = {"10.0.0.7"};
  return round;
}

/// Rounds 1 and 2 were served here and have ended, 2 five seconds after 1.
Stores with_two_released() {
  Stores stores{seconds(35)};
  Actions ignored;
  stores.serve(round_number(1), ignored);
  stores.release(kFirstEnd, ignored);
  stores.serve(round_number(2), ignored);
  stores.release(kFirstEnd + seconds(5), ignored);
  return stores;
}

}  // namespace

TEST_CASE("a served listener is replaced, and its port is unknown until then") {
  Stores stores{seconds(35)};
  Actions actions;
  stores.open(actions);
  stores.opened(4000);
  CHECK(stores.port() == 4000);
  stores.serve(round_number(1), actions);
  CHECK(stores.port() == 0);
  CHECK(orders(actions) == "open, serve 1, open");
}

TEST_CASE("only a node that serves releases, once") {
  Stores stores{seconds(35)};
  Actions actions;
  stores.release(kFirstEnd, actions);
  CHECK(actions.empty());
  stores.serve(round_number(1), actions);
  stores.release(kFirstEnd, actions);
  stores.release(kFirstEnd, actions);
  CHECK(orders(actions) == "serve 1, open, release 1");
  CHECK(stores.released().front().close_at == kFirstEnd + seconds(35));
}

TEST_CASE("released stores are closed one by one, when their time is over, or all at once") {
  Stores stores = with_two_released();
  Actions actions;
  SECTION("one by one") {
    stores.close(Round(2), actions);
    CHECK(orders(actions) == "close 2");
    CHECK(stores.released().size() == 1);
  }
  SECTION("overdue") {
    stores.close_overdue(kFirstEnd + seconds(34), actions);
    CHECK(actions.empty());
    stores.close_overdue(kFirstEnd + seconds(35), actions);
    CHECK(orders(actions) == "close 1");
  }
  SECTION("all") {
    stores.close_released(actions);
    CHECK(orders(actions) == "close 1, close 2");
    CHECK(stores.released().empty());
  }
}

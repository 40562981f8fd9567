// Signals that end nothing, on one node.
#include <csignal>

#include "tests/client/seat.hpp"

using namespace ddprun;
using namespace ddprun::client;

namespace {

using Others = DeliverSignal::Others;

Seat running_seat() {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1));
  seat.feed(GroupRunning{Round(1)});
  seat.forget();
  return seat;
}

const PassSignal kFromElsewhere{Round(1), 10, "", "gpu-02"};

}  // namespace

TEST_CASE("a signal is delivered here and told to the coordinator") {
  Seat seat = running_seat();
  seat.feed(SignalCame{10, "pid 1 (init)"});
  CHECK(seat.said<PassSignal>() == PassSignal{Round(1), 10, "pid 1 (init)"});
  REQUIRE(seat.done<DeliverSignal>().has_value());
  CHECK(seat.done<DeliverSignal>()->others == Others::kTold);
  CHECK(seat.done<DeliverSignal>()->other_nodes == 1);
}

TEST_CASE("a signal for this node alone is not told") {
  Seat seat = running_seat();
  seat.feed(SignalCame{28, "", SignalCame::For::kThisNode});
  CHECK_FALSE(seat.said<PassSignal>().has_value());
  CHECK(seat.done<DeliverSignal>()->others == Others::kNone);
}

TEST_CASE("a signal without a link reaches the workers here, and says that it is not passed on") {
  Seat seat = running_seat();
  seat.feed(LinkDown{seat.link_, "reset"});
  seat.forget();
  seat.feed(SignalCame{10});
  CHECK_FALSE(seat.said<PassSignal>().has_value());
  CHECK(seat.done<DeliverSignal>()->others == Others::kUnreachable);
}

TEST_CASE("a signal of another node is delivered in its own round only") {
  Seat seat = running_seat();
  seat.hear(kFromElsewhere);
  CHECK(seat.done<DeliverSignal>()->host == "gpu-02");
  seat.forget();
  seat.hear(PassSignal{Round(2), 10});
  CHECK_FALSE(seat.done<DeliverSignal>().has_value());
  CHECK(seat.membership_.stale() == 1);
}

TEST_CASE("no coordinator kills or freezes ranks by a signal that it passes on") {
  Seat seat = running_seat();
  for (const int signal : {SIGKILL, SIGSTOP, SIGSEGV}) {
    seat.hear(PassSignal{Round(1), signal, "", "gpu-02"});
    CHECK_FALSE(seat.done<DeliverSignal>().has_value());
  }
}

TEST_CASE("a signal that comes here and from another node is delivered once, whatever the order") {
  for (const bool here_first : {true, false}) {
    Seat seat = running_seat();
    if (here_first) seat.feed(SignalCame{10});
    seat.hear(kFromElsewhere);
    if (!here_first) {
      seat.forget();
      seat.feed(SignalCame{10});
      CHECK_FALSE(seat.said<PassSignal>().has_value());
      CHECK_FALSE(seat.done<DeliverSignal>().has_value());
    } else {
      CHECK(seat.done<DeliverSignal>()->host.empty());
    }
  }
}

TEST_CASE("a signal that is forced on ranks stays so, here and on other nodes") {
  Seat seat = running_seat();
  seat.feed(SignalCame{10, "ddprun signal (pid 7)", SignalCame::For::kAllNodes, true});
  CHECK(seat.done<DeliverSignal>()->force);
  CHECK(seat.said<PassSignal>()->force);
  seat.forget();
  seat.hear(PassSignal{Round(1), 12, "", "gpu-02", true});
  CHECK(seat.done<DeliverSignal>()->force);
}

// A node without a round that knows all hosts of the run: docs/FAILOVER.md.
#include "tests/client/seat.hpp"

using namespace ddprun;
using namespace ddprun::client;

namespace {

const Place kHostTwo{"gpu-02", "gpu-02", 29400};
const Place kHostThree{"gpu-03", "gpu-03", 29400};

/// The kernel of the endpoint's host has refused it.
Seat after_refusal() {
  MembershipOptions options = Seat::options(seconds(60), 3);
  options.hosts = {kHostTwo, kHostThree};
  Seat seat(std::move(options));
  seat.feed(StoreOpened{4000});
  seat.forget();
  seat.feed(LinkDown{seat.link_, "10.0.4.11:29400: connection refused", true});
  return seat;
}

void lose(Seat& seat) {
  seat.feed(LinkDown{seat.link_, "connection refused", true});
}

/// The attempt after this.
void retry(Seat& seat) {
  seat.forget();
  seat.after(seconds(1));
  REQUIRE(seat.done<Connect>());
  CHECK(!seat.done<Connect>()->to);  // the endpoint
}

}  // namespace

TEST_CASE("the other hosts are asked in turn, each after the endpoint") {
  Seat seat = after_refusal();
  CHECK(seat.done<Connect>()->to == kHostTwo);
  lose(seat);
  retry(seat);
  lose(seat);
  CHECK(seat.done<Connect>()->to == kHostThree);
  lose(seat);
  retry(seat);
  seat.feed(LinkUp{seat.link_});
  seat.hear(Waiting{1, 2, 3, Round(0), milliseconds(0), "1 node joined, waiting for 1 more"});
  CHECK(seat.membership_.has_coordinator());
}

TEST_CASE("a node is sent from a host of the list to the one that coordinates") {
  Seat seat = after_refusal();
  seat.feed(LinkUp{seat.link_});
  CHECK(seat.said<Hello>());
  seat.hear(Moved{"10.0.4.12", 7002});
  CHECK(!seat.membership_.has_coordinator());
  seat.forget();
  seat.after(seconds(1));
  CHECK(seat.done<Connect>()->to == Place{"10.0.4.12", "10.0.4.12", 7002});
  seat.forget();
  lose(seat);  // it is gone by now
  CHECK(seat.done<Connect>()->to == kHostThree);
}

TEST_CASE("another run's coordinator at a host of the list is passed by, other refusals hold") {
  Seat seat = after_refusal();
  seat.feed(LinkUp{seat.link_});
  seat.hear(Refused{RefusalCode::kWrongRun, "another run is here", {}});
  CHECK(!seat.done<End>());
  retry(seat);
  lose(seat);
  CHECK(seat.done<Connect>()->to == kHostThree);
  seat.feed(LinkUp{seat.link_});
  seat.hear(Refused{RefusalCode::kTermsDiffer, "it has other terms", {}});
  REQUIRE(seat.done<End>());
  CHECK(seat.done<End>()->exit_code == kExitRefused);
}

TEST_CASE("why the endpoint does not answer is what a node says while it waits") {
  Seat seat = after_refusal();
  lose(seat);
  seat.after(seconds(600));
  REQUIRE(seat.done<End>());
  const std::string sentence = seat.done<End>()->text;
  CHECK(sentence.find("10.0.4.11:29400 did not answer") != std::string::npos);
  CHECK(sentence.find("majority") == std::string::npos);
}

// The scene of the tests of a run whose coordinator is followed by another one.
#pragma once

#include "tests/round/desk.hpp"

namespace ddprun::round {

using namespace protocol;

inline SuccessionOptions first_coordinator() {
  SuccessionOptions options;
  options.exists = true;
  options.at_endpoint = true;
  return options;
}

inline SuccessionOptions candidate(const std::string& ended_author) {
  SuccessionOptions options;
  options.exists = true;
  options.candidate = {ended_author, "lost the coordinator", ""};
  return options;
}

inline Hello standing_by(Hello hello, int port) {
  hello.standby_port = static_cast<std::uint16_t>(port);
  return hello;
}

/// Of one of `size` nodes in round 3 of coordinator "c0", whose node was rank 0.
inline Hello claiming(Desk& desk, const std::string& host, int group_rank, int size,
                      Succession succession = {0, true, true, true}) {
  Hello hello = desk.hello(host, 1, 8);
  hello.claim = Claim{{Round(3), "c0"},    group_rank, size, RestartCount(0),
                      NodeState::kRunning, succession, false};
  return hello;
}

/// Nodes "a" (with the coordinator), "b", "c" on links 1 to 3, in round 1.
inline Desk three_nodes() {
  Desk desk(first_coordinator());
  Hello own = standing_by(desk.hello("a", 1, 3), 7001);
  own.runs_coordinator = true;
  desk.say(1, own);
  desk.say(2, standing_by(desk.hello("b", 1, 3), 7002), {"10.0.0.2", "10.0.0.1"});
  desk.say(3, standing_by(desk.hello("c", 1, 3), 7003), {"10.0.0.3", "10.0.0.1"});
  return desk;
}

}  // namespace ddprun::round

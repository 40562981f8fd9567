// Takeover: a hello with the id of an agent whose link is open. Either its link broke and only the
// agent knows, or another process uses its id. An agent closes its link before it makes another
// one, so it is asked over the old one: an answer shows that the hello is not its own, and without
// one the new link is taken after a short time. The question is the proof: it needs no field that
// could be sent again, and agents of every version answer it. Plain data.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rendezvous/round/event.hpp"

namespace ddprun::round {

/// For the answer, or a quarter of the silence limit. Only an agent that is back waits for it.
inline constexpr Duration kTakeoverMax = std::chrono::seconds(1);
/// Messages behind the hello that wait with it; an agent sends its last report, a `stopped` and
/// heartbeats, which count once.
inline constexpr std::size_t kHeldMessagesMax = 8;

struct Takeover {
  Received hello;
  std::vector<Received> behind{};  // what else came on that link
  int question = 0;
  TimePoint until;
};

/// By agent id: one for each agent, of which the link is open.
using Takeovers = std::map<std::string, Takeover>;

}  // namespace ddprun::round

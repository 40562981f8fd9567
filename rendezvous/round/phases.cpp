#include "rendezvous/round/phases.hpp"

#include <algorithm>

namespace ddprun::round {

namespace {

void extend_to(Deadline& deadline, TimePoint until) {
  if (deadline) deadline = std::max(*deadline, until);
}

}  // namespace

void Forming::extend(TimePoint until) {
  extend_to(join_deadline, until);
  extend_to(store_deadline, until);
}

void Rebuilding::extend(TimePoint until) {
  deadline = std::max(deadline, until);
}

void Running::extend(TimePoint until) {
  extend_to(answer_deadline, until);
}

void Stopping::extend(TimePoint until) {
  deadline = std::max(deadline, until);
}

bool Rebuilding::take(Agent& agent, const protocol::Claim& claim) {
  if (claim.stamp.number > claimed.number) {
    claimed = claim.stamp;
    claims.assign(static_cast<std::size_t>(claim.group_size), nullptr);
    missing = claim.group_size;
  }
  const auto place = static_cast<std::size_t>(claim.group_rank);
  // Its first claim of a round counts: an agent has one place, that of its group rank.
  const bool counts = agent.last == claim.stamp && agent.group_rank == claim.group_rank;
  const bool fits = claim.stamp == claimed && place < claims.size() && size() == claim.group_size;
  if (!counts || !fits || claims[place] != nullptr) return false;
  claims[place] = &agent;
  --missing;
  return true;
}

void Rebuilding::forget(const Agent& agent) {
  for (Agent*& claim : claims) {
    if (claim != &agent) continue;
    claim = nullptr;
    ++missing;
  }
}

}  // namespace ddprun::round

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
  extend_to(return_deadline, until);
}

void Running::extend(TimePoint until) {
  extend_to(answer_deadline, until);
  extend_to(question_deadline, until);
  extend_to(hang_deadline, until);
  extend_to(return_deadline, until);
}

void Stopping::extend(TimePoint until) {
  deadline = std::max(deadline, until);
}

bool Rebuilding::take(Agent& agent, const protocol::Claim& claim) {
  if (claim.stamp.number > claimed.number) {
    claimed = claim.stamp;
    size = claim.group_size;
    claims.clear();
  }
  // Its first claim of a round counts: an agent has one place, that of its group rank.
  const bool counts = agent.last == claim.stamp && agent.group_rank == claim.group_rank;
  const bool fits = claim.stamp == claimed && claim.group_size == size && claim.group_rank < size;
  return counts && fits && claims.emplace(claim.group_rank, &agent).second;
}

void Rebuilding::ended(const Agent& agent) {
  const auto found = claims.find(agent.group_rank);
  is_broken = is_broken || (found != claims.end() && found->second == &agent);
}

void Rebuilding::forget(const Agent& agent) {
  const auto found = claims.find(agent.group_rank);
  if (found != claims.end() && found->second == &agent) claims.erase(found);
}

}  // namespace ddprun::round

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

}  // namespace ddprun::round

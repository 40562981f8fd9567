#include "rendezvous/client/membership/search.hpp"

namespace ddprun::client {

void CoordinatorSearch::also_asks(const std::vector<Place>& hosts) {
  has_hosts_ = !hosts.empty();
  for (const Place& place : hosts) successors_.push_back({place});
}

void CoordinatorSearch::learn(const std::vector<protocol::Successor>& successors, int own) {
  if (is_away()) return;  // the list that it goes through stays
  if (has_hosts_ && successors.empty()) return;
  has_hosts_ = false;
  successors_.clear();
  for (const protocol::Successor& one : successors) {
    successors_.push_back({{one.host, one.address, one.port}, one.group_rank == own});
  }
}

void CoordinatorSearch::found() {
  at_ = 0;
  is_behind_ = false;
  has_resigned_ = false;
}

void CoordinatorSearch::moved() {
  found();
  if (!has_hosts_) successors_.clear();
}

CoordinatorSearch::Step CoordinatorSearch::lost(LinkLoss loss, bool answered) {
  if (has_hosts_) return ask_host(loss, answered);
  if (!has_successors()) return Step::kAgain;
  if (!is_away()) {
    is_silent_ = loss == LinkLoss::kSilent;
    // Its process may have ended: only its kernel knows.
    if (loss == LinkLoss::kEnded) return answered ? Step::kNow : Step::kAgain;
    return next();
  }
  if (is_behind_) return next();
  if (loss != LinkLoss::kEnded) return next();
  // Who closes the connection has its coordinator still.
  const bool loses_it = is_silent_ || has_resigned_;
  if (loses_it && ++turned_away_ < kTurnsMax) return Step::kSoon;
  return start_again();
}

CoordinatorSearch::Step CoordinatorSearch::ask_host(LinkLoss loss, bool answered) {
  if (is_away()) return start_again();
  if (loss == LinkLoss::kEnded && answered) return Step::kNow;
  at_ = asked_++ % successors_.size() + 1;
  return Step::kGo;
}

CoordinatorSearch::Step CoordinatorSearch::abdicated() {
  is_behind_ = true;
  return next();
}

CoordinatorSearch::Step CoordinatorSearch::next() {
  turned_away_ = 0;
  if (++at_ > successors_.size()) return start_again();
  return is_candidate() ? Step::kLead : Step::kGo;
}

CoordinatorSearch::Step CoordinatorSearch::start_again() {
  at_ = 0;
  is_behind_ = false;
  return Step::kStart;
}

}  // namespace ddprun::client

#include "rendezvous/store/turns.hpp"

namespace ddprun::store {

bool Turns::has_used_up(Share share) const {
  const auto spent = spent_.find(share);
  return waiting_.contains(share) || (spent != spent_.end() && spent->second >= kShareMax);
}

void Turns::tick(TimePoint now) {
  if (now < window_end_) return;
  window_end_ = now + kWindow;
  spent_.clear();
}

void Turns::wait(Share share, Id id) {
  const auto [found, is_new] = waiting_.try_emplace(share);
  if (is_new) rotation_.push_back(share);
  found->second.push_back(id);
}

Turns::Share Turns::next() {
  const Share share = rotation_.front();
  rotation_.pop_front();
  spent_.erase(share);
  return share;
}

std::optional<Turns::Id> Turns::take(Share share) {
  const auto found = waiting_.find(share);
  if (found->second.empty()) {
    waiting_.erase(found);
    return std::nullopt;
  }
  const auto spent = spent_.find(share);
  if (spent != spent_.end() && spent->second >= kShareTurn) {
    rotation_.push_back(share);
    return std::nullopt;
  }
  const Id id = found->second.front();
  found->second.pop_front();
  return id;
}

}  // namespace ddprun::store

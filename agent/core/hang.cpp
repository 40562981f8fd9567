#include "agent/core/hang.hpp"

#include <algorithm>

#include "agent/core/limits.hpp"

namespace ddprun {

HangWatch::HangWatch(Duration limit)
    : limit_(limit), interval_(std::clamp<Duration>(limit / 4, kHangSampleMin, kHangSampleMax)) {}

void HangWatch::begin(TimePoint now) {
  sampled_ = now;
  quiet_since_ = now;
  last_.clear();
}

bool HangWatch::shows_progress(const std::vector<RankProgress>& ranks, Duration since) const {
  if (ranks.size() != last_.size()) return true;
  const Duration idle = since / kHangIdleShare;
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    if (ranks[at].processes != last_[at].processes) return true;
    if (ranks[at].step != last_[at].step) return true;
    if (ranks[at].written != last_[at].written) return true;
    if (ranks[at].cpu - last_[at].cpu > idle) return true;
  }
  return false;
}

bool HangWatch::is_late(TimePoint now) const {
  return now - next() > interval_ + kHangSampleLate;
}

Duration HangWatch::sample(const std::vector<RankProgress>& ranks, TimePoint now) {
  if (is_late(now) || shows_progress(ranks, now - sampled_)) quiet_since_ = now;
  sampled_ = now;
  last_ = ranks;
  return now - quiet_since_;
}

// The kernel counts in ticks: so soon after a sample one tick is not much.
Duration HangWatch::look(const std::vector<RankProgress>& ranks, TimePoint now) const {
  const bool moves = shows_progress(ranks, std::max(now - sampled_, interval_));
  return moves || is_late(now) ? Duration(0) : now - quiet_since_;
}

}  // namespace ddprun

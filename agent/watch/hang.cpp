#include "agent/watch/hang.hpp"

#include <algorithm>

namespace ddprun {

namespace {

/// More than `idle` a second.
bool grew(std::uint64_t now, std::uint64_t last, std::uint64_t idle, Duration since) {
  const double seconds = std::chrono::duration<double>(since).count();
  return now > last && static_cast<double>(now - last) > static_cast<double>(idle) * seconds;
}

bool moved(const RankProgress& now, const RankProgress& last, Duration since) {
  if (now.held) return true;  // ddprun does not take what it writes
  if (now.processes != last.processes || now.step != last.step) return true;
  if (now.written != last.written || now.storage != last.storage) return true;
  if (now.waited_faults != last.waited_faults) return true;
  if (now.cpu - last.cpu > since / kHangIdleShare) return true;
  if (grew(now.read, last.read, kHangIdleBytes, since)) return true;
  if (grew(now.faults, last.faults, kHangIdleFaults, since)) return true;
  if (!now.close) return false;
  if (now.close->for_user) return true;
  if (!last.close) return false;
  return now.close->io_wait != last.close->io_wait ||
         grew(now.close->network, last.close->network, kHangIdleBytes, since);
}

}  // namespace

HangWatch::HangWatch(Duration limit)
    : limit_(limit), interval_(std::clamp<Duration>(limit / 4, kHangSampleMin, kHangSampleMax)) {}

void HangWatch::begin(TimePoint now) {
  sampled_ = now;
  quiet_since_ = now;
  last_.clear();
}

bool HangWatch::shows_progress(const std::vector<RankProgress>& ranks, Duration since) const {
  if (ranks.size() != last_.size()) return true;
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    if (moved(ranks[at], last_[at], since)) return true;
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

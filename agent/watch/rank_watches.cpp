#include "agent/watch/rank_watches.hpp"

#include <algorithm>
#include <utility>

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

SleepWatch::SleepWatch(Duration limit)
    : limit_(limit), interval_(std::clamp<Duration>(limit / 4, kSleepLookMin, kSleepLookMax)) {}

void SleepWatch::begin(TimePoint now) {
  looked_ = now;
  since_.clear();
}

std::vector<Sleeper> SleepWatch::look(const std::vector<WorkerState>& workers, TimePoint now) {
  if (now - next() > kHangSampleLate) since_.clear();
  looked_ = now;
  std::map<int, TimePoint> since;
  std::vector<Sleeper> found;
  for (const WorkerState& looked_at : workers) {
    if (looked_at.state != 'D') continue;
    const auto before = since_.find(looked_at.worker.pid);
    const TimePoint from = before == since_.end() ? now : before->second;
    since.emplace(looked_at.worker.pid, from);
    const bool slept = now - from >= limit_ && from != now;
    if (slept) found.push_back({looked_at.worker, now - from, ""});
  }
  since_ = std::move(since);
  return found;
}

void EarlyFinish::update(int finished, int running, TimePoint now) {
  active_ = finished > 0 && running > 0;
  if (active_ && !since_) since_ = now;
}

std::optional<TimePoint> EarlyFinish::next_note() const {
  if (notes_ == 0) return *since_ + kFirstPartialNote;
  if (notes_ == 1) return *since_ + kSecondPartialNote;
  return std::nullopt;
}

std::optional<TimePoint> EarlyFinish::next() const {
  if (!active_ || gave_up_) return std::nullopt;
  const std::optional<TimePoint> note = next_note();
  if (!timeout_) return note;
  const TimePoint end = *since_ + *timeout_;
  return note ? std::min(*note, end) : end;
}

EarlyFinish::Due EarlyFinish::take(TimePoint now) {
  const std::optional<TimePoint> due = next();
  if (!due || now < *due) return Due::kNothing;
  if (timeout_ && now >= *since_ + *timeout_) {
    gave_up_ = true;
    return Due::kGiveUp;
  }
  return ++notes_ == 1 ? Due::kFirstNote : Due::kSecondNote;
}

std::optional<Duration> EarlyFinish::left(TimePoint now) const {
  if (!timeout_) return std::nullopt;
  return std::max(Duration(0), *since_ + *timeout_ - now);
}

TimePoint InputWatch::next() const {
  return asked_ + kInputTick;
}

std::vector<InputWatch::Look> InputWatch::due(const std::vector<InputRank>& ranks, TimePoint now) {
  asked_ = now;
  std::map<int, Watched> running;
  std::vector<Look> looks;
  for (const InputRank& each : ranks) {
    const auto known = ranks_.find(each.rank.value());
    Watched rank = known == ranks_.end() ? Watched{} : known->second;
    const bool has_written = known == ranks_.end() || rank.written != each.written;
    if (has_written) {
      rank.written = each.written;
      rank.pause = kInputLookMin;
      rank.next = each.written.value_or(now) + kInputLookMin;
    }
    if (now >= rank.next) {
      looks.push_back({each.rank, rank.pause >= kInputCloselyAfter});
      rank.pause = std::min(2 * rank.pause, kInputLookMax);
      rank.next = now + rank.pause;
    } else if (rank.waited) {
      looks.push_back({each.rank, true});
    }
    running.emplace(each.rank.value(), rank);
  }
  ranks_ = std::move(running);
  return looks;
}

InputWatch::News InputWatch::found(const std::vector<Look>& looks, const std::vector<bool>& waits,
                                   TimePoint now) {
  News news;
  for (std::size_t at = 0; at < looks.size() && at < waits.size(); ++at) {
    const auto known = ranks_.find(looks[at].rank.value());
    if (known == ranks_.end()) continue;
    std::optional<TimePoint>& waited = known->second.waited;
    if (waits[at]) {
      if (!waited) news.began.push_back(looks[at].rank);
      news.waiting.push_back(looks[at].rank);
      waited = now;
    } else if (waited && now - *waited >= kInputForgotten) {
      news.over.push_back(looks[at].rank);
      waited.reset();
    }
  }
  return news;
}

}  // namespace ddprun

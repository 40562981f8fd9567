#include "agent/watch/sleep_watch.hpp"

#include <algorithm>
#include <utility>

#include "agent/watch/hang.hpp"

namespace ddprun {

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

}  // namespace ddprun

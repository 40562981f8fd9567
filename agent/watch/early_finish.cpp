#include "agent/watch/early_finish.hpp"

#include <algorithm>

namespace ddprun {

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

}  // namespace ddprun

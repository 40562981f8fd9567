#include "agent/watch/timer_table.hpp"

#include <signal.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ddprun {

namespace json = boost::json;

namespace {

Error bad_request(const char* what) {
  return {ErrorKind::kUsage, what};
}

std::optional<int> integer_field(const json::object& request, const char* name) {
  const json::value* field = request.if_contains(name);
  if (field == nullptr) return std::nullopt;
  const std::int64_t* number = field->if_int64();
  const bool fits = number != nullptr && *number >= std::numeric_limits<int>::min() &&
                    *number <= std::numeric_limits<int>::max();
  if (!fits) return std::nullopt;
  return static_cast<int>(*number);
}

std::optional<double> number_field(const json::object& request, const char* name) {
  const json::value* field = request.if_contains(name);
  if (field == nullptr || !field->is_number()) return std::nullopt;
  const double number = field->to_number<double>();
  if (!std::isfinite(number)) return std::nullopt;
  return number;
}

}  // namespace

Result<TimerRequest> parse_timer_request(std::string_view line) {
  json::error_code wrong;
  const json::value parsed = json::parse(json::string_view(line.data(), line.size()), wrong);
  const json::object* fields = wrong ? nullptr : parsed.if_object();
  if (fields == nullptr) return bad_request("it is not a JSON object");
  const auto pid = integer_field(*fields, "pid");
  if (!pid || *pid <= 0) return bad_request("its pid is not a number above 0");
  const json::value* scope = fields->if_contains("scope_id");
  if (scope == nullptr || !scope->is_string()) return bad_request("its scope_id is not a text");
  const auto expires = number_field(*fields, "expiration_time");
  if (!expires) return bad_request("its expiration_time is not a number");
  const auto signal = integer_field(*fields, "signal");
  if (!signal || *signal > SIGRTMAX) return bad_request("its signal is not one");
  const auto& text = scope->get_string();
  return TimerRequest{*pid, std::string(text.data(), text.size()), *expires, std::max(*signal, 0)};
}

bool TimerTable::set(const TimerRequest& request, unsigned long long process_started, TimePoint now,
                     double wall) {
  const std::pair<int, std::string> key{request.pid, request.scope};
  if (full() && !timers_.contains(key)) return false;
  constexpr double kFarthest = std::chrono::duration<double>(kTimerFarthest).count();
  const double left = std::clamp(request.expires - wall, 0.0, kFarthest);
  const auto in = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(left));
  timers_.insert_or_assign(
      key, WorkerTimer{request.pid, request.scope, request.signal, in, now + in, process_started});
  return true;
}

void TimerTable::forget(int pid) {
  std::erase_if(timers_, [pid](const auto& timer) { return timer.first.first == pid; });
}

std::vector<WorkerTimer> TimerTable::take_due(TimePoint now) {
  std::vector<WorkerTimer> due;
  std::erase_if(timers_, [&](const auto& timer) {
    if (timer.second.deadline > now) return false;
    due.push_back(timer.second);
    return true;
  });
  std::stable_sort(due.begin(), due.end(), [](const WorkerTimer& one, const WorkerTimer& other) {
    return one.deadline < other.deadline;
  });
  return due;
}

void TimerTable::hold(WorkerTimer timer) {
  timer.deadline = TimePoint::max();
  std::pair<int, std::string> key{timer.pid, timer.scope};
  timers_.insert_or_assign(std::move(key), std::move(timer));
}

void TimerTable::start_held(TimePoint now) {
  for (auto& [key, timer] : timers_) {
    if (timer.deadline == TimePoint::max()) timer.deadline = now + timer.lasts;
  }
}

void TimerTable::extend(Duration by) {
  for (auto& [key, timer] : timers_) {
    if (timer.deadline != TimePoint::max()) timer.deadline += by;
  }
}

std::optional<TimePoint> TimerTable::next() const {
  TimePoint first = TimePoint::max();
  for (const auto& timer : timers_) first = std::min(timer.second.deadline, first);
  if (first == TimePoint::max()) return std::nullopt;
  return first;
}

std::vector<int> TimerTable::pids() const {
  std::vector<int> all;
  for (const auto& timer : timers_) {
    if (all.empty() || all.back() != timer.first.first) all.push_back(timer.first.first);
  }
  return all;
}

bool TimerTable::full() const {
  return timers_.size() >= kTimersMax;
}

}  // namespace ddprun

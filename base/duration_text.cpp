#include "base/duration_text.hpp"

namespace ddprun {

namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using tenths_of_second = std::chrono::duration<long long, std::deci>;

std::string number(long long value) {
  return std::to_string(value);
}

std::string two_units(long long count, const char* unit, long long rest, const char* rest_unit) {
  return number(count) + unit + (rest == 0 ? "" : " " + number(rest) + rest_unit);
}

}  // namespace

std::string duration_text(Duration duration) {
  using std::chrono::round;
  if (duration == Duration::zero()) return "0 s";
  const auto ms = round<milliseconds>(duration).count();
  if (ms < 1000) return number(ms) + " ms";
  const auto tenths = round<tenths_of_second>(duration).count();
  if (tenths < 100 && ms % 1000 != 0) {
    return number(tenths / 10) + "." + number(tenths % 10) + " s";
  }
  const auto seconds = round<std::chrono::seconds>(duration).count();
  if (seconds < 60) return number(seconds) + " s";
  if (seconds < 3600) return two_units(seconds / 60, " min", seconds % 60, " s");
  const auto minutes = round<std::chrono::minutes>(duration).count();
  return two_units(minutes / 60, " h", minutes % 60, " min");
}

std::string span_text(std::string_view preposition, Duration duration) {
  if (duration < milliseconds(1)) return "at once";
  return std::string(preposition) + " " + duration_text(duration);
}

std::string seconds_text(Duration duration) {
  const auto ms = duration_cast<milliseconds>(duration).count();
  std::string text = number(ms / 1000);
  if (ms % 1000 == 0) return text;
  std::string fraction = number(1000 + ms % 1000).substr(1);
  while (fraction.back() == '0') fraction.pop_back();
  return text + "." + fraction;
}

}  // namespace ddprun

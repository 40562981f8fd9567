#include "base/format.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace ddprun {

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array<std::string_view, 7> kUnits = {"B",   "KiB", "MiB", "GiB",
                                                      "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  std::size_t unit = 1;
  std::int64_t size = 1024;
  while (unit + 1 < kUnits.size() && bytes / 1024 >= size) {
    size *= 1024;
    ++unit;
  }
  const std::int64_t whole = bytes / size;
  const auto tenths =
      static_cast<std::uint64_t>(bytes % size) * 10 / static_cast<std::uint64_t>(size);
  std::string text = std::to_string(whole);
  if (tenths > 0 && whole < 1000) text += "." + std::to_string(tenths);
  return text + " " + std::string(kUnits.at(unit));
}

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

namespace {

/// As a terminal counts, for text whose characters are all one column wide.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char one) {
    return (static_cast<unsigned char>(one) & 0xC0) != 0x80;
  }));
}

}  // namespace

std::string in_columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.empty() ? 0 : rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], width_of(row.at(i)));
    }
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      text += row[i] + std::string(widths[i] - width_of(row[i]) + 2, ' ');
    }
    text += row.back();
    text.erase(text.find_last_not_of(' ') + 1);  // of cells that are empty
    text += '\n';
  }
  return text;
}

}  // namespace ddprun

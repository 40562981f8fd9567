#include "trainer/options/parse_value.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>

#include "trainer/error.hpp"

namespace ddprun::trainer {
namespace {

[[noreturn]] void refuse(const FlagValue& value, const std::string& expected) {
  throw UsageError(value.flag + " is \"" + value.text + "\"; give " + expected);
}

template <class Number>
std::optional<Number> whole_text(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string short_text(double number) {
  std::string text = std::to_string(number);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::size_t edits_between(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

std::uint64_t whole_in(const FlagValue& value, const Bounds& bounds) {
  const auto number = whole_text<std::uint64_t>(value.text);
  if (!number || *number < bounds.least || *number > bounds.most) {
    refuse(value, "a whole number from " + std::to_string(bounds.least) + " to " +
                      std::to_string(bounds.most));
  }
  return *number;
}

double real_in(const FlagValue& value, const Interval& interval) {
  const auto number = whole_text<double>(value.text);
  const bool open = interval.ends == Interval::Ends::kOpenBelow;
  if (!number || !std::isfinite(*number) || *number < interval.least || *number > interval.most ||
      (open && *number == interval.least)) {
    refuse(value, std::string("a number ") + (open ? "above " : "from ") +
                      short_text(interval.least) + (open ? " and at most " : " to ") +
                      short_text(interval.most));
  }
  return *number;
}

std::vector<double> rising_reals(const FlagValue& value) {
  std::vector<double> numbers;
  std::string_view rest = value.text;
  while (true) {
    const auto comma = rest.find(',');
    const auto number = whole_text<double>(rest.substr(0, comma));
    const double before = numbers.empty() ? 0 : numbers.back();
    if (!number || !std::isfinite(*number) || *number <= before) {
      refuse(value, "comma-separated numbers above 0 in ascending order, like 30,60,80");
    }
    numbers.push_back(*number);
    if (comma == std::string_view::npos) return numbers;
    rest.remove_prefix(comma + 1);
  }
}

std::chrono::milliseconds duration_of(const FlagValue& value) {
  constexpr double kWeekMs = 7.0 * 24 * 3600 * 1000;
  if (value.text == "off") return std::chrono::milliseconds(0);
  const auto unit_at = std::min(value.text.size(), value.text.find_first_not_of("0123456789."));
  const std::string unit = value.text.substr(unit_at);
  const auto number = whole_text<double>(std::string_view(value.text).substr(0, unit_at));
  const double scale = unit == "ms"                  ? 1
                       : unit == "s" || unit.empty() ? 1e3
                       : unit == "m"                 ? 60e3
                       : unit == "h"                 ? 3600e3
                                                     : 0;
  if (!number || scale == 0 || *number < 0 || *number * scale > kWeekMs) {
    refuse(value, "a duration like 30s, 500ms, 2m or 1h, at most one week, or off");
  }
  return std::chrono::milliseconds(std::llround(*number * scale));
}

int one_of(const FlagValue& value, const Names& names) {
  const auto found = std::find_if(names.begin(), names.end(), [&value](const auto& entry) {
    return entry.first == value.text;
  });
  if (found != names.end()) return found->second;
  std::string list;
  for (const auto& [name, number] : names) list += (list.empty() ? "" : ", ") + name;
  refuse(value, "one of " + list);
}

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_edits =
      word.size() / 3 + 1;  // more edits than a third of the word are not a typing mistake
  for (const auto& candidate : candidates) {
    const std::size_t edits = edits_between(word, candidate);
    if (edits < best_edits || (edits == best_edits && best.empty())) {
      best = candidate;
      best_edits = edits;
    }
  }
  return best;
}

}  // namespace ddprun::trainer

#include "launcher/options/values.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

namespace ddprun {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// The text without underscores; nullopt if one is not between two digits.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      plain += text[i];
      continue;
    }
    const bool between =
        i > 0 && i + 1 < text.size() && is_digit(text[i - 1]) && is_digit(text[i + 1]);
    if (!between) return std::nullopt;
  }
  return plain;
}

/// Removes white space, underscores and a plus sign, which from_chars does not accept.
std::optional<std::string> prepared(std::string_view text) {
  auto plain = without_underscores(trimmed(text));
  if (!plain || !plain->starts_with('+')) return plain;
  plain->erase(0, 1);
  if (plain->starts_with('-')) return std::nullopt;
  return plain;
}

template <class Number>
std::optional<Number> whole_text(const std::optional<std::string>& text) {
  if (!text || text->empty()) return std::nullopt;
  Number value{};
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

/// The unit in seconds; removes it from the end of `text`.
double take_unit(std::string_view& text) {
  static constexpr std::array<std::pair<std::string_view, double>, 4> kUnits{
      {{"ms", 0.001}, {"s", 1}, {"m", 60}, {"h", 3600}}};
  for (const auto& [unit, seconds] : kUnits) {
    if (!text.ends_with(unit)) continue;
    text.remove_suffix(unit.size());
    return seconds;
  }
  return 1;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\r\f\v";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  return whole_text<std::int64_t>(prepared(text));
}

std::optional<double> parse_number(std::string_view text) {
  const auto value = whole_text<double>(prepared(text));
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return value;
}

std::optional<Duration> parse_time(std::string_view text) {
  constexpr double kTenYearsInSeconds = 10.0 * 365 * 24 * 3600;
  text = trimmed(text);
  const double unit = take_unit(text);
  const auto amount = parse_number(text);
  if (!amount) return std::nullopt;
  const double seconds = *amount * unit;
  if (seconds < 0 || seconds > kTenYearsInSeconds) return std::nullopt;
  const std::chrono::duration<double> exact(seconds);
  // As typed: 1.001 s is in binary a little less.
  const auto microseconds = std::chrono::round<std::chrono::microseconds>(exact);
  return std::chrono::duration_cast<std::chrono::milliseconds>(microseconds);
}

std::optional<Duration> parse_positive_time(std::string_view text) {
  const auto time = parse_time(text);
  return time && *time > Duration(0) ? time : std::nullopt;
}

std::optional<std::uint64_t> parse_digits(std::string_view text) {
  constexpr std::size_t kDigitsMax = 18;  // below 2^63
  if (text.empty() || text.size() > kDigitsMax) return std::nullopt;
  std::uint64_t number = 0;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return number;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  text = trimmed(text);
  if (text.ends_with("iB")) {
    text.remove_suffix(2);
    if (text.empty() || kUnits.find(text.back()) == std::string_view::npos) return std::nullopt;
  }
  const auto unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  const std::size_t shift = unit == std::string_view::npos ? 0 : 10 * (unit + 1);
  if (shift != 0) text.remove_suffix(1);
  const auto amount = parse_digits(text);
  if (!amount || *amount >> (63 - shift) != 0) return std::nullopt;
  return *amount << shift;
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::vector<std::string> split_escaped_list(std::string_view text) {
  if (text.empty()) return {};
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',') {
      parts.back() += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == ',') {
      parts.back() += ',';
      ++i;
    } else {
      parts.emplace_back();
    }
  }
  return parts;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string lower(std::string text) {
  for (char& letter : text) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return text;
}

Result<bool> parse_switch(const std::string& variable, const std::string& value) {
  const std::string word = lower(std::string(trimmed(value)));
  if (word == "true" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "no" || word == "off") return false;
  if (const auto number = parse_integer(word)) return *number != 0;
  return usage(variable + "='" + value +
               "' is neither on (1, true, yes, on) nor off (0, false, no, off)");
}

}  // namespace ddprun

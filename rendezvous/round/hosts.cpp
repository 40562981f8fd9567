#include "rendezvous/round/hosts.hpp"

#include <algorithm>
#include <cstddef>

namespace ddprun::round {
namespace {

// Pieces of a list shown before the rest is only counted.
constexpr std::size_t kPiecesMax = 8;

[[nodiscard]] bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

[[nodiscard]] std::string_view leading_digits(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && is_digit(text[end])) ++end;
  return text.substr(0, end);
}

[[nodiscard]] std::string_view without_zeros(std::string_view digits) {
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  return digits;
}

/// Below, equal or above 0 like compare(); numbers of any length.
[[nodiscard]] int compare_numbers(std::string_view left, std::string_view right) {
  left = without_zeros(left);
  right = without_zeros(right);
  if (left.size() != right.size()) return left.size() < right.size() ? -1 : 1;
  return left.compare(right);
}

/// Bytes that both begin with, up to the number that is not equal: most hosts of a run differ only
/// in that, and a sort of many compares this far first.
[[nodiscard]] std::size_t common_prefix(std::string_view left, std::string_view right) {
  const auto differs = std::mismatch(left.begin(), left.end(), right.begin(), right.end()).first;
  auto at = static_cast<std::size_t>(differs - left.begin());
  while (at > 0 && is_digit(left[at - 1])) --at;
  return at;
}

/// The name that follows `host` in a numbered series of the same width; empty if it has no number.
[[nodiscard]] std::string successor(std::string host) {
  std::size_t at = host.size();
  while (at > 0 && is_digit(host[at - 1])) {
    --at;
    if (host[at] != '9') {
      ++host[at];
      return host;
    }
    host[at] = '0';
  }
  return {};
}

struct Piece {
  std::string text;
  std::size_t count;  // names it stands for
};

[[nodiscard]] std::string joined(const std::vector<Piece>& pieces) {
  std::string text;
  std::size_t left = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i >= kPiecesMax) {
      left += pieces[i].count;
      continue;
    }
    if (i > 0) text += ", ";
    text += pieces[i].text;
  }
  if (left > 0) text += " and " + std::to_string(left) + " more";
  return text;
}

}  // namespace

bool natural_less(std::string_view left, std::string_view right) {
  const std::string_view whole_left = left;
  const std::string_view whole_right = right;
  const std::size_t common = common_prefix(left, right);
  left.remove_prefix(common);
  right.remove_prefix(common);
  while (!left.empty() && !right.empty()) {
    if (is_digit(left.front()) && is_digit(right.front())) {
      const std::string_view left_digits = leading_digits(left);
      const std::string_view right_digits = leading_digits(right);
      const int order = compare_numbers(left_digits, right_digits);
      if (order != 0) return order < 0;
      left.remove_prefix(left_digits.size());
      right.remove_prefix(right_digits.size());
      continue;
    }
    if (left.front() != right.front()) return left.front() < right.front();
    left.remove_prefix(1);
    right.remove_prefix(1);
  }
  if (left.empty() != right.empty()) return left.empty();
  return whole_left.size() < whole_right.size();
}

std::string host_list(std::vector<std::string> hosts) {
  if (hosts.empty()) return "none";
  std::sort(hosts.begin(), hosts.end(), natural_less);
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < hosts.size();) {
    std::size_t end = i + 1;
    while (end < hosts.size() && hosts[end] == hosts[i]) ++end;
    if (end - i > 1) {
      pieces.push_back({hosts[i] + " x" + std::to_string(end - i), end - i});
      i = end;
      continue;
    }
    while (end < hosts.size() && hosts[end] == successor(hosts[end - 1])) ++end;
    if (end < hosts.size() && end - i > 1 && hosts[end] == hosts[end - 1]) --end;
    if (end - i < 3) end = i + 1;
    const std::string last = end - i > 1 ? ".." + hosts[end - 1] : "";
    pieces.push_back({hosts[i] + last, end - i});
    i = end;
  }
  return joined(pieces);
}

std::string number_list(const std::vector<int>& numbers) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (end - i < 3) end = i + 1;
    const std::string last = end - i > 1 ? ".." + std::to_string(numbers[end - 1]) : "";
    pieces.push_back({std::to_string(numbers[i]) + last, end - i});
    i = end;
  }
  return joined(pieces);
}

}  // namespace ddprun::round

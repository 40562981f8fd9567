#include "launcher/schedulers/placement.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "launcher/options/values.hpp"

namespace ddprun {
namespace {

using Names = std::vector<std::string>;

bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

std::string padded(std::uint64_t number, std::size_t width) {
  const std::string digits = std::to_string(number);
  return digits.size() >= width ? digits : std::string(width - digits.size(), '0') + digits;
}

/// Appends one range of a bracket, "7" or "07-09", to `numbers`. Returns false if it is invalid or
/// too long.
bool append_range(std::string_view text, Names& numbers) {
  const auto dash = text.find('-');
  const std::string_view low = text.substr(0, dash);
  const auto first = parse_digits(low);
  const auto last = dash == std::string_view::npos ? first : parse_digits(text.substr(dash + 1));
  if (!first || !last || *first > *last || *last - *first >= kHostlistMax) return false;
  if (low.size() > kHostBytesMax) return false;
  for (std::uint64_t number = *first; number <= *last; ++number) {
    numbers.push_back(padded(number, low.size()));
  }
  return numbers.size() <= kHostlistMax;
}

std::optional<Names> numbers_of(std::string_view bracket) {
  Names numbers;
  while (true) {
    const auto comma = bracket.find(',');
    if (!append_range(bracket.substr(0, comma), numbers)) return std::nullopt;
    if (comma == std::string_view::npos) return numbers;
    bracket.remove_prefix(comma + 1);
  }
}

/// Every name followed by every ending; nullopt if there are too many, or one is too long.
std::optional<Names> product(const Names& names, const Names& endings) {
  if (names.size() * endings.size() > kHostlistMax) return std::nullopt;
  Names all;
  all.reserve(names.size() * endings.size());
  for (const std::string& name : names) {
    for (const std::string& ending : endings) {
      if (name.size() + ending.size() > kHostBytesMax) return std::nullopt;
      all.push_back(name + ending);
    }
  }
  return all;
}

/// One entry of the list, from its first letter to the next comma or the end.
std::optional<Names> expand_entry(std::string_view entry) {
  Names names{""};
  while (!entry.empty()) {
    std::optional<Names> endings;
    std::size_t used = 0;
    if (entry[0] == '[') {
      const auto close = entry.find(']');
      if (close == std::string_view::npos) return std::nullopt;
      endings = numbers_of(entry.substr(1, close - 1));
      used = close + 1;
    } else {
      used = std::min(entry.find('['), entry.size());
      const std::string_view letters = entry.substr(0, used);
      if (!std::all_of(letters.begin(), letters.end(), is_name_letter)) return std::nullopt;
      endings = Names{std::string(letters)};
    }
    if (!endings) return std::nullopt;
    auto longer = product(names, *endings);
    if (!longer) return std::nullopt;
    names = std::move(*longer);
    entry.remove_prefix(used);
  }
  if (names.front().empty()) return std::nullopt;
  return names;
}

/// The end of the first entry of `text`: a comma inside brackets belongs to the entry.
std::size_t end_of_entry(std::string_view text) {
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') inside = true;
    if (text[i] == ']') inside = false;
    if (text[i] == ',' && !inside) return i;
  }
  return text.size();
}

Error not_a_list(std::string_view text) {
  constexpr std::size_t kShownMax = 200;
  const std::string shown(text.substr(0, kShownMax));
  return {ErrorKind::kUsage, "'" + shown + (text.size() > kShownMax ? "..." : "") +
                                 "' is not a list of at most " + std::to_string(kHostlistMax) +
                                 " hosts such as node[01-16],login"};
}

/// Converts the inside of a bracket with a width prefix, "2:1-3,5", to Slurm's notation:
/// "01-03,05".
std::string padded_ranges(std::string_view text) {
  const auto colon = text.find(':');
  const auto width =
      colon == std::string_view::npos ? std::nullopt : parse_digits(text.substr(0, colon));
  if (!width || *width > kHostBytesMax) return std::string(text);
  std::string result;
  std::string number;
  const auto finish_number = [&] {
    if (!number.empty() && number.size() < *width) result.append(*width - number.size(), '0');
    result += number;
    number.clear();
  };
  for (const char c : text.substr(colon + 1)) {
    if (c >= '0' && c <= '9') {
      number += c;
    } else {
      finish_number();
      result += c;
    }
  }
  finish_number();
  return result;
}

}  // namespace

Result<Names> expand_hostlist(std::string_view text) {
  Names all;
  std::string_view rest = text;
  while (true) {
    const std::size_t end = end_of_entry(rest);
    auto names = expand_entry(rest.substr(0, end));
    if (!names || all.size() + names->size() > kHostlistMax) return not_a_list(text);
    std::move(names->begin(), names->end(), std::back_inserter(all));
    if (end == rest.size()) return all;
    rest.remove_prefix(end + 1);
  }
}

std::string hostlist_of_node_regex(std::string_view text) {
  text = text.substr(0, text.find('@'));
  std::string result;
  while (!text.empty()) {
    const auto open = text.find('[');
    const auto close = open == std::string_view::npos ? open : text.find(']', open);
    if (close == std::string_view::npos) return result + std::string(text);
    result += text.substr(0, open + 1);
    result += padded_ranges(text.substr(open + 1, close - open - 1)) + "]";
    text.remove_prefix(close + 1);
  }
  return result;
}

}  // namespace ddprun

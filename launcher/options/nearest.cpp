#include "launcher/options/nearest.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "launcher/options/option_table.hpp"

namespace ddprun {

std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> before(right.size() + 1);
  std::vector<std::size_t> above(right.size() + 1);
  std::vector<std::size_t> row(right.size() + 1);
  for (std::size_t j = 0; j <= right.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= left.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped =
          i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[right.size()];
}

namespace {

/// The option meant by "-np", as other launchers spell it: of the options with that prefix, one
/// about workers before one about nodes, as in --help.
const OptionSpec* begun_by(std::string_view letters) {
  const OptionSpec* best = nullptr;
  for (const OptionSpec& option : all_options()) {
    if (!option.name.starts_with(letters)) continue;
    if (best == nullptr || option.group < best->group) best = &option;
  }
  return best;
}

}  // namespace

std::string suggestion(const std::string& name) {
  const bool one_dash = name.size() > 1 && name[0] == '-' && name[1] != '-';
  const OptionSpec* begun = one_dash ? begun_by(std::string_view(name).substr(1)) : nullptr;
  if (begun != nullptr) return "did you mean " + dashed(*begun) + "?";
  std::string wanted = name;
  std::replace(wanted.begin(), wanted.end(), '_', '-');
  std::string best;
  std::size_t best_distance = std::numeric_limits<std::size_t>::max();
  for (const OptionSpec& option : all_options()) {
    const std::string candidate = dashed(option);
    const std::size_t distance = edit_distance(wanted, candidate);
    if (distance >= best_distance) continue;
    best = candidate;
    best_distance = distance;
  }
  if (best_distance <= 2 || best_distance * 4 <= wanted.size()) return "did you mean " + best + "?";
  return "the most similar is " + best + "; ddprun --help lists all";
}

}  // namespace ddprun

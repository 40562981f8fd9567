#include "base/columns.hpp"

#include <algorithm>

namespace ddprun {

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

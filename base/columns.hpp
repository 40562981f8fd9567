// Text in columns, as `ps` shows it. Pure.
#pragma once

#include <string>
#include <vector>

namespace ddprun {

/// The rows, each column as wide as its widest cell, two blanks between them; the last column is
/// not filled up. Every row has as many cells as the first.
[[nodiscard]] std::string in_columns(const std::vector<std::vector<std::string>>& rows);

}  // namespace ddprun

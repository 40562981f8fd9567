// What the style check prints besides violations: how long files and functions are. Pure text.
#pragma once

#include <string>
#include <vector>

#include "tests/style/source_file.hpp"

namespace ddprun::style {

/// Median, 90th percentile and the longest ten of files and functions, lines of tests per line of
/// source.
[[nodiscard]] std::string size_report(const std::vector<SourceFile>& files);

}  // namespace ddprun::style

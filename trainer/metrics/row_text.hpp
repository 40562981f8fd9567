// A MetricRow as a line of metrics.csv and of metrics.jsonl, and the step of such a line. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/metrics/metric_row.hpp"

namespace ddprun::trainer {

[[nodiscard]] std::string csv_header();  // with line feed
[[nodiscard]] std::string csv_line(
    const MetricRow& row);  // with line feed; numbers round-trip exactly
[[nodiscard]] std::string json_line(const MetricRow& row);  // NaN and infinity become null

/// nullopt if the line (without its line feed) is truncated or has another format.
[[nodiscard]] std::optional<std::uint64_t> step_of_csv(std::string_view line);
[[nodiscard]] std::optional<std::uint64_t> step_of_json(std::string_view line);

/// The shortest text that parses to the same number.
[[nodiscard]] std::string number_text(double value);

}  // namespace ddprun::trainer

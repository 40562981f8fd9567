#include "trainer/metrics/row_text.hpp"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <utility>

namespace ddprun::trainer {
namespace {

constexpr std::size_t kColumns = 13;
using Columns = std::array<std::pair<const char*, std::string>, kColumns>;

std::string seconds_text(std::int64_t microseconds) {
  const std::string fraction = std::to_string(1'000'000 + microseconds % 1'000'000);
  return std::to_string(microseconds / 1'000'000) + "." + fraction.substr(1);
}

/// Names and values in the order of the CSV file; the first is text, the others numbers.
Columns columns_of(const MetricRow& row) {
  return {{{"phase", phase_name(row.phase)},
           {"step", std::to_string(row.step)},
           {"epoch", number_text(row.epoch)},
           {"loss", number_text(row.means.loss)},
           {"top1", number_text(row.means.top1)},
           {"top3", number_text(row.means.top3)},
           {"top5", number_text(row.means.top5)},
           {"lr", number_text(row.lr)},
           {"images_per_second", number_text(row.images_per_second)},
           {"seconds", number_text(row.seconds)},
           {"unix_time", seconds_text(row.unix_time_us)},
           {"world", std::to_string(row.world)},
           {"restart", std::to_string(row.restart)}}};
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string phase_name(Phase phase) {
  return phase == Phase::kTrain ? "train" : "test";
}

std::string number_text(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::string csv_header() {
  std::string line;
  for (const auto& [name, value] : columns_of({})) line += std::string(name) + ",";
  line.back() = '\n';
  return line;
}

std::string csv_line(const MetricRow& row) {
  std::string line;
  for (const auto& [name, value] : columns_of(row)) line += value + ",";
  line.back() = '\n';
  return line;
}

std::string json_line(const MetricRow& row) {
  std::string line = "{";
  for (const auto& [name, value] : columns_of(row)) {
    const bool number = std::none_of(value.begin(), value.end(),
                                     [](char c) { return c == 'n' || c == 'i'; });  // nan, inf
    const bool text = std::string_view(name) == "phase";
    line += "\"" + std::string(name) + "\":" +
            (text     ? "\"" + value + "\""
             : number ? value
                      : "null") +
            ",";
  }
  line.back() = '}';
  return line + "\n";
}

std::optional<std::uint64_t> step_of_csv(std::string_view line) {
  if (std::count(line.begin(), line.end(), ',') != kColumns - 1) return std::nullopt;
  const auto first = line.find(',');
  const auto second = line.find(',', first + 1);
  return whole_number(line.substr(first + 1, second - first - 1));
}

std::optional<std::uint64_t> step_of_json(std::string_view line) {
  boost::system::error_code error;
  const auto value = boost::json::parse({line.data(), line.size()}, error);
  if (error || !value.is_object()) return std::nullopt;
  const auto* step = value.get_object().if_contains("step");
  if (step == nullptr || !step->is_int64() || step->get_int64() < 0) return std::nullopt;
  return static_cast<std::uint64_t>(step->get_int64());
}

}  // namespace ddprun::trainer

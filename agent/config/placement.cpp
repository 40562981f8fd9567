#include "agent/config/placement.hpp"

#include <algorithm>
#include <utility>

#include "base/columns.hpp"
#include "base/count_text.hpp"
#include "base/printable.hpp"

namespace ddprun {

namespace {

using Row = std::vector<std::string>;

std::string range_text(int first, int last) {
  return std::to_string(first) + (first == last ? "" : "-" + std::to_string(last));
}

/// "0-7,64-71".
std::string ranges_text(const std::set<int>& numbers) {
  std::string text;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const int first = *at;
    int last = first;
    while (++at != numbers.end() && *at == last + 1) last = *at;
    text += (text.empty() ? "" : ",") + range_text(first, last);
  }
  return text;
}

std::string device_of(const WorkerConfig& workers, std::size_t local_rank) {
  const bool one_each = !workers.virtual_devices.empty();
  const auto& devices = one_each ? workers.virtual_devices : workers.gpus;
  if (local_rank >= devices.size()) return "";
  const std::string& name = devices[local_rank];
  const bool index = name.find_first_not_of("0123456789") == std::string::npos;
  return (index ? "GPU " : "") + printable(name);
}

bool has_the_same(const Placed& left, const Placed& right) {
  return left.device == right.device && left.cpus == right.cpus && left.threads == right.threads &&
         left.log == right.log;
}

/// Without the columns in which no worker has anything.
std::vector<Row> without_empty_columns(const std::vector<Row>& rows) {
  std::vector<Row> kept(rows.size());
  for (std::size_t column = 0; column < rows.front().size(); ++column) {
    const bool is_empty = std::all_of(rows.begin() + 1, rows.end(),
                                      [column](const Row& row) { return row[column].empty(); });
    for (std::size_t row = 0; !is_empty && row < rows.size(); ++row) {
      kept[row].push_back(rows[row][column]);
    }
  }
  return kept;
}

}  // namespace

Placed placed(const LaunchConfig& config, const WorkerPlan& plan, std::string log) {
  const auto local_rank = static_cast<std::size_t>(plan.local_rank.value());
  const auto& bound = config.workers.cpus;
  return {plan.rank, device_of(config.workers, local_rank),
          bound.empty() ? "" : ranges_text(bound.at(local_rank)),
          printable(value_or(plan.environment, "OMP_NUM_THREADS", "")), std::move(log)};
}

std::string placement_table(const std::string& host, const std::vector<Placed>& workers) {
  std::vector<Row> rows{{"rank", "host", "device", "CPUs", "threads", "log"}};
  std::size_t shown = 0;
  while (shown < workers.size() && rows.size() <= kPlacementLinesMax) {
    const Placed& first = workers[shown];
    std::size_t end = shown + 1;
    while (end < workers.size() && has_the_same(first, workers[end])) ++end;
    rows.push_back({range_text(first.rank.value(), workers[end - 1].rank.value()), printable(host),
                    first.device, first.cpus, first.threads, printable(first.log)});
    shown = end;
  }
  const std::vector<Row> table = without_empty_columns(rows);
  if (table.front().size() <= 2) return "";
  std::string text = in_columns(table);
  text.pop_back();  // the end of its last line
  if (shown == workers.size()) return text;
  return text + "\n(" + count_text(static_cast<long long>(workers.size() - shown), "rank") +
         " more)";
}

}  // namespace ddprun

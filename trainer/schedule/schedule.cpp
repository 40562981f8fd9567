#include "trainer/schedule/schedule.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

namespace ddprun::trainer {
namespace {

constexpr std::array<std::pair<ScheduleKind, const char*>, 5> kNames{{
    {ScheduleKind::kConstant, "constant"},
    {ScheduleKind::kMultiStep, "multi-step"},
    {ScheduleKind::kCosine, "cosine"},
    {ScheduleKind::kOneCycle, "one-cycle"},
    {ScheduleKind::kWarmupLinear, "warmup-linear"},
}};

/// Half a cosine from `first` at part 0 to `last` at part 1.
double cosine_between(double first, double last, double part) {
  return last + (first - last) / 2 * (1 + std::cos(std::numbers::pi * part));
}

double multi_step(const ScheduleOptions& options, double step) {
  const auto passed =
      std::count_if(options.milestones.begin(), options.milestones.end(),
                    [step](std::uint64_t at) { return static_cast<double>(at) <= step; });
  return options.base * std::pow(options.gamma, static_cast<double>(passed));
}

double one_cycle(const ScheduleOptions& options, double step, double total) {
  const double first = options.base / options.div_factor;
  const double last = first / options.final_div_factor;
  const double peak = options.warmup_fraction * total - 1;  // as computed by OneCycleLR
  if (step <= peak && peak > 0) return cosine_between(first, options.base, step / peak);
  const double down = total - 1 - peak;
  const double part = down > 0 ? std::min(1.0, (step - peak) / down) : 1.0;
  return cosine_between(options.base, last, part);
}

}  // namespace

double learning_rate(const ScheduleOptions& options, const Progress& progress) {
  const double total = std::max(1.0, static_cast<double>(progress.total));
  const double step = std::min(static_cast<double>(progress.step), total);
  if (options.kind == ScheduleKind::kOneCycle) return one_cycle(options, step, total);
  const double warmup = std::floor(options.warmup_fraction * total);
  if (step < warmup) return options.base * (step + 1) / warmup;
  const double rest = total - warmup;
  const double part = rest > 0 ? (step - warmup) / rest : 1.0;
  switch (options.kind) {
    case ScheduleKind::kMultiStep:
      return multi_step(options, step);
    case ScheduleKind::kCosine:
      return cosine_between(options.base, options.minimum, part);
    case ScheduleKind::kWarmupLinear:
      return options.base * (1 - part);
    case ScheduleKind::kConstant:
    case ScheduleKind::kOneCycle:
      break;
  }
  return options.base;
}

std::string schedule_name(ScheduleKind kind) {
  const auto found = std::find_if(kNames.begin(), kNames.end(),
                                  [kind](const auto& entry) { return entry.first == kind; });
  return found == kNames.end() ? std::string() : std::string(found->second);
}

std::vector<ScheduleKind> schedule_kinds() {
  std::vector<ScheduleKind> kinds;
  for (const auto& entry : kNames) kinds.push_back(entry.first);
  return kinds;
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const auto& entry : kNames) names.emplace_back(entry.second);
  return names;
}

}  // namespace ddprun::trainer

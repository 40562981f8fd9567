// Learning rates as pure functions of (step, total): a resumed run asks for its step and has the
// right rate, there is no scheduler state. Formulas of torch.optim.lr_scheduler, so that curves can
// be compared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ddprun::trainer {

enum class ScheduleKind { kConstant, kMultiStep, kCosine, kOneCycle, kWarmupLinear };

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kWarmupLinear;
  double base = 0.2;             // the highest rate (one-cycle and warm-up) or the first one
  double warmup_fraction = 0.2;  // of all steps, rising linearly (one-cycle: cosine) to base
  std::vector<std::uint64_t>
      milestones;  // multi-step: steps at which the rate is multiplied by gamma, rising
  double gamma = 0.1;
  double minimum = 0.0;           // cosine: the last rate
  double div_factor = 25.0;       // one-cycle: the first rate is base / div_factor
  double final_div_factor = 1e4;  // one-cycle: the last is base / div_factor / final_div_factor
};

/// Where in the run: 0 <= step < total. A step at or beyond total gives the rate of the end.
struct Progress {
  std::uint64_t step = 0;
  std::uint64_t total = 1;
};

/// The rate to use in `step`.
///  constant     base
///  multi-step   base * gamma^(milestones <= step): MultiStepLR
///  cosine       linear warm-up, then minimum + (base - minimum) (1 + cos(pi t / T)) / 2:
///  CosineAnnealingLR one-cycle    cosine from base/div up to base, then down to
///  base/div/final_div: OneCycleLR, momentum
///               untouched
///  warmup-linear  linear up to base over the warm-up, then linear to 0 at `total`
[[nodiscard]] double learning_rate(const ScheduleOptions& options, const Progress& progress);

/// "multi-step", … as written on the command line.
[[nodiscard]] std::string schedule_name(ScheduleKind kind);
/// All of them, in one order.
[[nodiscard]] std::vector<ScheduleKind> schedule_kinds();
[[nodiscard]] std::vector<std::string> schedule_names();

}  // namespace ddprun::trainer

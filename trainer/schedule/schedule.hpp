// Learning rates as pure functions of (step, total). There is no scheduler state, so a resumed run
// gets the right rate for its step. The formulas are those of torch.optim.lr_scheduler, so that
// curves are comparable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ddprun::trainer {

enum class ScheduleKind { kConstant, kMultiStep, kCosine, kOneCycle, kWarmupLinear };

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kWarmupLinear;
  double base = 0.2;             // the highest rate (one-cycle and warm-up) or the initial rate
  double warmup_fraction = 0.2;  // of all steps; linear increase (one-cycle: cosine) to base
  std::vector<std::uint64_t>
      milestones;  // multi-step: steps at which the rate is multiplied by gamma, rising
  double gamma = 0.1;
  double minimum = 0.0;      // cosine: the final rate
  double div_factor = 25.0;  // one-cycle: the initial rate is base / div_factor
  double final_div_factor =
      1e4;  // one-cycle: the final rate is base / div_factor / final_div_factor
};

/// The position in the run: 0 <= step < total. A step at or beyond total gives the final rate.
struct Progress {
  std::uint64_t step = 0;
  std::uint64_t total = 1;
};

/// The rate to use in `step`:
///
/// - constant: base
/// - multi-step: base * gamma^(number of milestones <= step), as MultiStepLR
/// - cosine: linear warm-up, then minimum + (base - minimum) (1 + cos(pi t / T)) / 2, as
///   CosineAnnealingLR
/// - one-cycle: cosine from base / div_factor up to base, then down to
///   base / div_factor / final_div_factor, as OneCycleLR without its momentum cycle
/// - warmup-linear: linear up to base during warm-up, then linear down to 0 at `total`
[[nodiscard]] double learning_rate(const ScheduleOptions& options, const Progress& progress);

/// "multi-step", …: the name used on the command line.
[[nodiscard]] std::string schedule_name(ScheduleKind kind);
/// All kinds, and their names in the same order.
[[nodiscard]] std::vector<ScheduleKind> schedule_kinds();
[[nodiscard]] std::vector<std::string> schedule_names();

}  // namespace ddprun::trainer

// One row of metrics, as shown in every metrics file and on the console.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/metrics/metric_sums.hpp"

namespace ddprun::trainer {

enum class Phase { kTrain, kTest };
[[nodiscard]] std::string phase_name(Phase phase);  // "train", "test"

struct MetricRow {
  Phase phase = Phase::kTrain;
  std::uint64_t step = 0;  // committed steps, from 1; (phase, step) identifies a row
  double epoch = 0;        // completed epochs, fractional
  Means means;    // over all ranks; kTrain: since the previous row, kTest: of the whole test set
  double lr = 0;  // kTrain
  double images_per_second = 0;  // of all ranks
  double seconds = 0;            // of training since the start of the run; continues after a resume
  std::int64_t unix_time_us = 0;
  int world = 1;
  int restart = 0;  // TORCHELASTIC_RESTART_COUNT
};

}  // namespace ddprun::trainer

// One fact about the training: what every metrics file and the console show. Plain value.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/metrics/metric_sums.hpp"

namespace ddprun::trainer {

enum class Phase { kTrain, kTest };
[[nodiscard]] std::string phase_name(Phase phase);  // "train", "test"

struct MetricRow {
  Phase phase = Phase::kTrain;
  std::uint64_t step = 0;  // steps committed so far: from 1; a row is known by (phase, step)
  double epoch = 0;        // epochs completed, with fraction
  Means means;  // over all ranks; for kTrain since the row before, for kTest of the whole test set
  double lr = 0;                 // kTrain
  double images_per_second = 0;  // all ranks together
  double seconds = 0;            // of training, since the start of the run; goes on after a resume
  std::int64_t unix_time_us = 0;
  int world = 1;
  int restart = 0;  // TORCHELASTIC_RESTART_COUNT
};

}  // namespace ddprun::trainer

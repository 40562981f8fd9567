// What a checkpoint says beside its tensors: where the run is, and what must be equal for the
// cursor to mean the same samples. Kept as text in the file's metadata. Plain value, pure. Errors:
// TrainerError.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/checkpoint/safetensors.hpp"

namespace ddprun::trainer {

struct TrainingState {
  std::uint64_t step = 0;  // the global cursor: committed global batches since the start of the run
  std::uint64_t total_steps = 0;  // the schedule's length
  std::uint64_t seed = 0;
  std::uint64_t samples = 0;     // of the training set
  std::uint64_t batch_size = 0;  // global
  int width = 64;
  double best_top1 = 0;  // of the test set, over the run
  std::uint64_t best_step = 0;
  double seconds = 0;         // of training so far
  int world = 1;              // for information
  std::string torch_version;  // for information
};

/// Every field as text; keys begin with "ddprun.".
[[nodiscard]] Metadata to_metadata(const TrainingState& state);
/// `name` is for the sentence of an error: a missing, malformed or newer-format field.
[[nodiscard]] TrainingState state_from(const Metadata& metadata, const std::string& name);

/// Throws TrainerError naming what differs (seed, batch size, number of samples, width): with any
/// of them changed the cursor would lose or repeat samples. total_steps may change: a run can be
/// made longer.
void check_same_run(const TrainingState& saved, const TrainingState& wanted,
                    const std::string& name);

}  // namespace ddprun::trainer

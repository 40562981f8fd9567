// What a checkpoint contains besides its tensors: the position of the run, and the parameters that
// must match for the cursor to denote the same samples. Stored as text in the file's metadata.
// Pure. Errors: TrainerError.
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
/// `name` appears in error messages: a missing or malformed field, or a newer format.
[[nodiscard]] TrainingState state_from(const Metadata& metadata, const std::string& name);

/// Throws a TrainerError that names the difference (seed, batch size, number of samples, width):
/// with a different value the cursor would skip or repeat samples. total_steps may change, to
/// extend a run.
void check_same_run(const TrainingState& saved, const TrainingState& wanted,
                    const std::string& name);

}  // namespace ddprun::trainer

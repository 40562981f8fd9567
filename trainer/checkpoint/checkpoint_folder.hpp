// The checkpoints of one run in one folder: NAME.last.safetensors, NAME.previous.safetensors (the
// one before it) and NAME.best.safetensors. Each contains a digest of its contents; a damaged
// checkpoint is skipped in favour of the previous one, and reported. One writer per run (rank 0);
// blocking. Errors: TrainerError.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/checkpoint/safetensors.hpp"
#include "trainer/checkpoint/training_state.hpp"

namespace ddprun::trainer {

struct Checkpoint {
  SafetensorsFile file;
  TrainingState state;
};

/// The checkpoint to resume from, if any, and one sentence for each newer checkpoint that was
/// skipped.
struct Found {
  std::optional<Checkpoint> checkpoint;
  std::vector<std::string> passed_over;
};

/// Reads one checkpoint and verifies its digest. Throws TrainerError if it is missing or damaged.
[[nodiscard]] Checkpoint read_checkpoint(const std::filesystem::path& path);

/// Writes one checkpoint with its digest, atomically.
void write_checkpoint(const std::filesystem::path& path, std::span<const TensorView> tensors,
                      const TrainingState& state);

class CheckpointFolder {
 public:
  /// `name` is --model-filename; a known extension (.safetensors, .pt, .pth, .bin) is removed. The
  /// folder is created by the first save.
  CheckpointFolder(std::filesystem::path folder, const std::string& name);

  /// The current last checkpoint becomes the previous one, unless it is damaged or belongs to
  /// another run (a new run in an old folder); in that case it is replaced. Once a checkpoint has
  /// been saved, a complete one exists at every moment.
  void save_last(std::span<const TensorView> tensors, const TrainingState& state);
  void save_best(std::span<const TensorView> tensors, const TrainingState& state) const;

  /// Whether the folder contains the best weights that `state` refers to, undamaged. False after a
  /// resume from another folder, or if the file was removed.
  [[nodiscard]] bool has_best(const TrainingState& state) const;

  /// For --resume auto: the last, otherwise the previous, otherwise the best checkpoint. Empty if
  /// the folder has none: a new run starts. If checkpoints exist but none is readable:
  /// TrainerError, because a new run would overwrite them.
  [[nodiscard]] Found find_last() const;

  [[nodiscard]] std::filesystem::path last() const;
  [[nodiscard]] std::filesystem::path previous() const;
  [[nodiscard]] std::filesystem::path best() const;
  /// Removes temporary files of killed writers. Call once from the writer, before the first save.
  void clean() const noexcept;

 private:
  std::filesystem::path folder_;
  std::string stem_;
  bool last_is_ours_ = false;  // written by this process
};

}  // namespace ddprun::trainer

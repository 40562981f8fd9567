// The checkpoints of one run in one folder: NAME.last.safetensors, NAME.previous.safetensors (the
// one before) and NAME.best.safetensors. Each carries a digest of everything in it; what is damaged
// is passed over for the one before, and said. One writer per run (rank zero); blocking. Errors:
// TrainerError.
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

/// The checkpoint to go on from, if any, and one sentence for each newer one that had to be passed
/// over.
struct Found {
  std::optional<Checkpoint> checkpoint;
  std::vector<std::string> passed_over;
};

/// Reads one checkpoint and checks its digest. Throws TrainerError when it is not there or damaged.
[[nodiscard]] Checkpoint read_checkpoint(const std::filesystem::path& path);

/// Writes one checkpoint with its digest, atomically.
void write_checkpoint(const std::filesystem::path& path, std::span<const TensorView> tensors,
                      const TrainingState& state);

class CheckpointFolder {
 public:
  /// `name` is --model-filename; a known extension (.safetensors, .pt, .pth, .bin) is dropped.
  /// The folder is made when something is saved.
  CheckpointFolder(std::filesystem::path folder, const std::string& name);

  /// The present last becomes the one before, unless it is damaged or of another run (a run that
  /// starts anew in an old folder); then the new one takes its place. At every instant a complete
  /// checkpoint exists once one was saved.
  void save_last(std::span<const TensorView> tensors, const TrainingState& state);
  void save_best(std::span<const TensorView> tensors, const TrainingState& state) const;

  /// Whether the folder has the best weights that `state` speaks of, undamaged. Not so after a
  /// resume from another folder, or when somebody removed the file.
  [[nodiscard]] bool has_best(const TrainingState& state) const;

  /// For --resume auto: last, else the one before, else the best. Nothing there: no checkpoint, the
  /// run starts anew. Something there, but nothing readable: TrainerError, because starting anew
  /// would overwrite it.
  [[nodiscard]] Found find_last() const;

  [[nodiscard]] std::filesystem::path last() const;
  [[nodiscard]] std::filesystem::path previous() const;
  [[nodiscard]] std::filesystem::path best() const;
  /// Removes what killed writers left. Call once, from the one writer, before the first save.
  void clean() const noexcept;

 private:
  std::filesystem::path folder_;
  std::string stem_;
  bool last_is_ours_ = false;  // written by this process
};

}  // namespace ddprun::trainer

// Saves checkpoints: decides when one is due, and writes it while training continues. What is
// written in the background is a copy in host memory that is taken between two steps, so the file
// is byte for byte that of the step; there is one copy and one write at a time. Main thread.
// Errors: TrainerError if a file cannot be written; in the background a result of poll(), wait().
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "trainer/checkpoint/background_write.hpp"
#include "trainer/checkpoint/checkpoint_folder.hpp"
#include "trainer/checkpoint/checkpoint_policy.hpp"
#include "trainer/options/options.hpp"
#include "trainer/program/reporter.hpp"
#include "trainer/train/model_state.hpp"

namespace ddprun::trainer {

class Saver {
 public:
  enum class Write { kInBackground, kNow };

  Saver(const TrainerOptions& options, CheckpointFolder& folder);

  /// Between two steps. False while one is being written.
  [[nodiscard]] bool due() const;
  /// Only if none is being written. kInBackground is kNow with --checkpoint-async off.
  void save_last(const NamedTensors& tensors, const TrainingState& state, Write how);
  void save_best(const NamedTensors& tensors, const TrainingState& state);

  /// Why the write in the background has failed; empty if it has not, still runs, or there is none.
  [[nodiscard]] std::string poll() { return settle(background_.poll()); }
  /// The same, but does not return while it runs.
  [[nodiscard]] std::string wait() { return settle(background_.wait()); }

  [[nodiscard]] const CheckpointCosts& costs() const { return costs_; }

 private:
  using Clock = CheckpointPolicy::Clock;
  std::string settle(const std::optional<WriteResult>& result);
  template <class Save>
  void pay_for(Save save);

  CheckpointFolder& folder_;
  bool in_background_;
  CheckpointPolicy policy_;
  CheckpointCosts costs_;
  Clock::time_point began_{};  // the latest one
  HostSnapshot snapshot_;
  BackgroundWrite background_;  // last: its thread reads the others
};

}  // namespace ddprun::trainer

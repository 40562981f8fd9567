// The output of rank 0 for the user: console lines and metrics files. The other ranks have no
// reporter. The sentences are pure functions. One thread. Errors: TrainerError if a metrics file
// cannot be opened; a later write error is reported and loses rows, but does not stop training.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/metrics/console.hpp"
#include "trainer/metrics/metric_row.hpp"
#include "trainer/metrics/metrics_writer.hpp"
#include "trainer/options/options.hpp"

namespace ddprun::trainer {

/// The facts in the first lines of output.
struct RunFacts {
  std::int64_t parameters = 0;
  int world = 1;
  int threads = 1;
  std::string device;       ///< "cpu", "NVIDIA H200"
  std::string collectives;  ///< "gloo", "nccl", "none"
  std::string precision;    ///< "fp32", "bf16"
  std::string torch;        ///< version
  std::uint64_t total_steps = 0;
};

[[nodiscard]] std::string model_sentence(const TrainerOptions& options, const RunFacts& facts);
[[nodiscard]] std::string plan_sentence(const TrainerOptions& options, const RunFacts& facts);
/// How long a rank that was kept needed for the parts of a recovery, one after the other.
struct RecoveryTimes {
  using Time = std::chrono::duration<double, std::milli>;
  Time left{};    ///< until it had no group
  Time waited{};  ///< until it was told of the next world
  Time joined{};  ///< until it was connected to all ranks
  Time agreed{};  ///< until all ranks had the same state
};
/// `times`: nullopt: this process is new.
[[nodiscard]] std::string recovered_sentence(std::uint64_t step, int ranks, int source,
                                             const std::optional<RecoveryTimes>& times);
[[nodiscard]] std::string healed_sentence(const std::vector<int>& ranks, std::uint64_t step);
/// No majority.
[[nodiscard]] std::string tie_sentence(const std::vector<int>& ranks, std::uint64_t step);
/// What the checkpoints of this process have cost.
struct CheckpointCosts {
  using Time = std::chrono::duration<double>;
  int saved = 0;
  Time waited{};  ///< the training stood still
  Time beside{};  ///< processor time of writes in the background
};
[[nodiscard]] std::string checkpoints_sentence(const CheckpointCosts& costs);
[[nodiscard]] std::string final_sentence(std::uint64_t step, const Means& test);
/// 11173962 -> "11,173,962".
[[nodiscard]] std::string grouped(std::int64_t number);

class Reporter {
 public:
  Reporter(const TrainerOptions& options, const RunFacts& facts, std::uint64_t resumed_step);

  void say(const std::string& sentence) { console_.say(sentence); }
  void progress(const BarState& state);
  /// Writes the row to the console and all files.
  void row(const MetricRow& row);
  void finish() { console_.finish(); }

 private:
  Console console_;
  MetricsWriter files_;
};

}  // namespace ddprun::trainer

// The parts of a run, constructed in dependency order and destroyed in reverse: reducer before
// group before store client. Members are public, because the loop in training.cpp works on them.
// Main thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "trainer/checkpoint/checkpoint_folder.hpp"
#include "trainer/data/order.hpp"
#include "trainer/data/sample_log.hpp"
#include "trainer/ddp/data_parallel.hpp"
#include "trainer/program/reporter.hpp"
#include "trainer/recover/agreement.hpp"
#include "trainer/recover/world_source.hpp"
#include "trainer/train/batches.hpp"
#include "trainer/train/device_sums.hpp"
#include "trainer/train/model_state.hpp"
#include "trainer/train/precision.hpp"
#include "trainer/train/saver.hpp"
#include "trainer/train/setup.hpp"
#include "trainer/train/sgd.hpp"
#include "trainer/train/tree_step.hpp"

namespace ddprun::trainer {

/// When this process passed the parts of its last recovery.
struct RecoveryClock {
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> failed;  // none: it is new
  Clock::time_point left, told, joined;
  /// Of one that ends now.
  [[nodiscard]] std::optional<RecoveryTimes> times() const;
};

struct Session {
  /// Initializes new weights on every rank; start() (resume.hpp) replaces them.
  Session(const TrainerOptions& given, const WorkerEnvironment& environment);

  /// Collective: connects to the other ranks of `environment`, and agrees on the precision.
  void join(const WorkerEnvironment& environment);
  /// After a collective has failed: the state before the step, no gradients, no group.
  void leave();
  void at(Moment moment) {
    if (watch) watch(moment, *this);
  }
  /// Before it has a place: what the first pass needs.
  void warm_up();
  /// The problem of a checkpoint in the background costs that checkpoint; empty: none.
  void report(const std::string& problem);
  /// The last step is committed: no rank will compute it again.
  void log_committed();

  [[nodiscard]] bool leads() const { return world.rank == 0; }
  [[nodiscard]] ModelState model_state() const;
  [[nodiscard]] std::uint64_t total_steps() const { return state.total_steps; }

  TrainerOptions options;
  CheckpointFolder folder;
  Saver saver;  // waits after the group has gone, so that no rank waits with it
  WorkerEnvironment world;
  Placement placement;
  std::unique_ptr<Group> group;  // none between two worlds
  Precision precision = Precision::kFp32;
  DataSet data;
  DataOrder order;
  ResNet18 model;
  Sgd sgd;
  std::unique_ptr<Batches> train_batches;
  std::unique_ptr<Batches> test_batches;
  ScheduleOptions schedule;
  TrainingState state;
  DeviceSums train_sums;   // of this rank
  MetricSums shared_sums;  // with --deterministic: of all ranks, on every rank
  std::optional<SampleLog> sample_log;
  std::optional<LoggedStep> uncommitted;  // the last step, with --deterministic
  bool whole = false;                     // the state is that after state.step steps
  std::uint64_t evaluated = 0;            // the step of the last test
  bool finished = false;                  // the result has been printed
  RecoveryClock recovery;
  WorldSource* worlds = nullptr;           // null: a lost rank ends this one
  MomentWatch watch;                       // of a test
  std::vector<at::Tensor> buffers_before;  // the step; empty if a lost rank ends this one
  std::optional<Reporter> reporter;        // rank 0
  std::optional<TreeStep> tree;            // with --deterministic, instead of:
  std::unique_ptr<DataParallel> parallel;  // last: destroyed first
};

}  // namespace ddprun::trainer

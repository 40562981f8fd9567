// The parts of a run, constructed in dependency order and destroyed in reverse: reducer before
// group before store client. Members are public, because the loop in training.cpp works on them.
// Main thread.
#pragma once

#include <memory>
#include <optional>

#include "trainer/checkpoint/checkpoint_folder.hpp"
#include "trainer/data/order.hpp"
#include "trainer/data/sample_log.hpp"
#include "trainer/ddp/data_parallel.hpp"
#include "trainer/program/reporter.hpp"
#include "trainer/train/batches.hpp"
#include "trainer/train/device_sums.hpp"
#include "trainer/train/model_state.hpp"
#include "trainer/train/precision.hpp"
#include "trainer/train/setup.hpp"
#include "trainer/train/sgd.hpp"

namespace ddprun::trainer {

struct Session {
  /// Collective. Initializes new weights on every rank; start() (resume.hpp) replaces them.
  Session(const TrainerOptions& given, const WorkerEnvironment& environment);

  [[nodiscard]] bool leads() const { return world.rank == 0; }
  [[nodiscard]] ModelState model_state() const;
  [[nodiscard]] std::uint64_t total_steps() const { return state.total_steps; }

  TrainerOptions options;
  WorkerEnvironment world;
  Placement placement;
  Group group;
  Precision precision;
  DataSet data;
  DataOrder order;
  ResNet18 model;
  Sgd sgd;
  std::unique_ptr<Batches> train_batches;
  std::unique_ptr<Batches> test_batches;
  ScheduleOptions schedule;
  TrainingState state;
  DeviceSums train_sums;
  CheckpointFolder folder;
  std::optional<SampleLog> sample_log;
  std::optional<Reporter> reporter;        // rank 0
  std::unique_ptr<DataParallel> parallel;  // last: destroyed first
};

}  // namespace ddprun::trainer

// Where a trainer that survives the loss of another rank learns of the next world. Implemented over
// worker_api for ddprun, and by tests.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "worker_api/worker.hpp"

namespace ddprun::trainer {

class WorldSource {
 public:
  WorldSource() = default;
  virtual ~WorldSource() = default;
  WorldSource(const WorldSource&) = delete;
  WorldSource& operator=(const WorldSource&) = delete;

  /// Waits for a world newer than the one that the process is in. nullopt: none came in time.
  [[nodiscard]] virtual std::optional<WorkerEnvironment> next() = 0;
  /// Whether next() would return at once: no collective of this world ends any more. Asked before
  /// every step.
  [[nodiscard]] virtual bool pending() = 0;
};

/// Points in a step and in a recovery at which a test may end the process, or damage its memory.
enum class Moment {
  kForward,   // before the step
  kReduce,    // before its first collective
  kReduced,   // all ranks have contributed, nothing is applied
  kUpdated,   // applied, not counted
  kJoin,      // before the group of the world is made
  kJoined,    // before the source is agreed on
  kTransfer,  // before the state is sent
  kReceived,  // before its digest is compared
  kVerified,  // before the first step
};
struct Session;
using MomentWatch = std::function<void(Moment moment, Session& session)>;

}  // namespace ddprun::trainer

// Where a trainer that survives the loss of another rank learns of the next world. Implemented over
// worker_api for ddprun, and by tests.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "worker_api/worker.hpp"

namespace ddprun::trainer {

/// What a rank knows of the next world, while it is in the present one.
enum class NextWorld {
  kNone,
  kGrown,  ///< all ranks of this world live, and more will: it can be left between two steps
  kLost,   ///< a rank of this world is gone: no collective of it will end
};

class WorldSource {
 public:
  WorldSource() = default;
  virtual ~WorldSource() = default;
  WorldSource(const WorldSource&) = delete;
  WorldSource& operator=(const WorldSource&) = delete;

  /// Waits for a world newer than the one that the process is in. nullopt: none came in time.
  [[nodiscard]] virtual std::optional<WorkerEnvironment> next() = 0;
  /// kNone: next() would wait. Asked before every step.
  [[nodiscard]] virtual NextWorld pending() = 0;
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

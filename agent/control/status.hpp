// What a ddprun tells about its run, as the control socket sends it (docs/COMMANDS.md). Plain data
// and a pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/types.hpp"

namespace ddprun::control {

struct WorkerStatus {
  Rank rank{0};
  LocalRank local_rank{0};
  int pid = 0;                       // 0: it does not run
  char state = 0;                    // as /proc shows it; 0: unknown
  std::optional<Duration> silent{};  // since its last output; none: not seen here
  struct Step {
    std::int64_t number = 0;
    Duration ago{};
  };
  std::optional<Step> step{};  // the last that it reported; none: it reports none
  bool warm = false;           // started from the template of --warm
};

/// A process that waits for the place of a lost rank.
struct SpareStatus {
  int number = 0;
  int pid = 0;
  char state = 0;      // as /proc shows it; 0: unknown
  bool waits = false;  // else it is still loading
};

struct NodeStatus {
  RunId run_id;
  std::string version{};
  std::string host{};
  int pid = 0;            // of the ddprun that the user started
  std::string command{};  // of a worker, printable
  WallTime started{};
  Duration age{};
  Round round{0};
  std::string state{};  // of the workers here: docs/internals/LINK.md
  Duration in_state{};  // for how long they are in it, in this round
  std::string waits{};  // for what, and until when; empty: for nothing
  int workers = 0;      // of this node
  RestartCount restarts{0};
  int max_restarts = 0;
  std::string store{};        // that this node serves; empty: none
  std::string log_dir{};      // empty: none
  std::string coordinator{};  // "gpu-01:29400"; empty: a single node
  std::string cluster{};      // GET /status of the coordinator, if that is in this process
  std::vector<WorkerStatus> ranks{};
  std::vector<SpareStatus> spares{};
};

/// Of these the members that do not change, for the time in which ddprun does not answer.
[[nodiscard]] std::string about(const NodeStatus& status);
/// One JSON object on one line, with its end.
[[nodiscard]] std::string to_json(const NodeStatus& status);

}  // namespace ddprun::control

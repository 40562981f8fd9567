// What a training program may know of its launcher, for C++; worker.h is the same as a C interface.
// Works under ddprun, under torchrun, and without any launcher, where the process is rank 0 of 1.
// Thread rule: any thread, while no other one changes the environment. Errors: a sentence, never a
// throw.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace ddprun {

struct WorkerEnvironment {
  bool launched = false;  // false: no launcher; the defaults below hold
  int rank = 0;           // 0 .. world_size-1, over all nodes
  int local_rank = 0;     // 0 .. local_world_size-1, on this node
  int world_size = 1;
  int local_world_size = 1;
  int group_rank = 0;        // number of this node
  int group_world_size = 1;  // nodes
  int restart_count = 0;     // restarts of the run so far
  int max_restarts = 0;
  int round = 1;  // which start of all workers this is: DDPRUN_ROUND, else restart_count + 1
  bool use_agent_store = false;  // the launcher serves the store: connect only, never listen
  std::string master_addr = "127.0.0.1";
  std::uint16_t master_port = 0;  // 0: unknown (no launcher)
  std::string run_id;             // empty without a launcher
  std::string error_file;         // where record_error() writes; empty: nowhere
};

/// The value of a variable, or nullptr: getenv in a program, a table in a test.
using VariableLookup = std::function<const char*(const char*)>;

/// Reads and checks the environment; nothing and a sentence in `problem` when a variable is missing
/// or contradicts another one. Neither RANK nor WORLD_SIZE set means that there is no launcher.
[[nodiscard]] std::optional<WorkerEnvironment> read_worker_environment(std::string& problem);
[[nodiscard]] std::optional<WorkerEnvironment> read_worker_environment(const VariableLookup& lookup,
                                                                       std::string& problem);

/// Makes writing to a closed socket an error instead of a death by SIGPIPE: see worker.h. 0 or an
/// errno.
int ignore_sigpipe();

/// The recorder's JSON: one line, valid whatever bytes the texts hold. `epoch_seconds`: time of
/// failure.
[[nodiscard]] std::string error_record(const std::string& message, const std::string& callstack,
                                       std::int64_t epoch_seconds);

/// Writes error_record() to TORCHELASTIC_ERROR_FILE in one step (a new file, then rename). 0;
/// ENOENT when there is no launcher to tell; another errno value when writing failed.
int record_error(const std::string& message, const std::string& callstack = "");

/// Runs `body` and returns its value. An exception is recorded, printed to stderr and becomes 1, so
/// that the launcher's report names it: `int main() { return ddprun::recorded([] { return train();
/// }); }`
int recorded(const std::function<int()>& body);

}  // namespace ddprun

// C++ interface for training programs to what the launcher provides; worker.h is the C equivalent.
// Works under ddprun, under torchrun and without a launcher, in which case the process is rank 0 of
// 1. Thread rule: any thread, as long as no other thread modifies the environment. Errors: a
// sentence; no exceptions.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace ddprun {

struct WorkerEnvironment {
  bool launched = false;  // false: no launcher; the defaults below apply
  int rank = 0;           // 0 .. world_size-1, over all nodes
  int local_rank = 0;     // 0 .. local_world_size-1, on this node
  int world_size = 1;
  int local_world_size = 1;
  int group_rank = 0;        // rank of this node
  int group_world_size = 1;  // number of nodes
  int restart_count = 0;     // restarts of the run so far
  int max_restarts = 0;
  int round = 1;                 // from 1; DDPRUN_ROUND, or restart_count + 1 if it is not set
  bool use_agent_store = false;  // the launcher serves the store: connect, do not listen
  std::string master_addr = "127.0.0.1";
  std::uint16_t master_port = 0;  // 0: unknown (no launcher)
  std::string run_id;             // empty without a launcher
  std::string error_file;         // the path that record_error() writes to; empty: none
};

/// Returns the value of a variable or nullptr: getenv in programs, a table in tests.
using VariableLookup = std::function<const char*(const char*)>;

/// Reads and validates the environment. Returns nullopt and sets `problem` to a sentence if a
/// variable is missing or contradicts another one. If neither RANK nor WORLD_SIZE is set, there is
/// no launcher.
[[nodiscard]] std::optional<WorkerEnvironment> read_worker_environment(std::string& problem);
[[nodiscard]] std::optional<WorkerEnvironment> read_worker_environment(const VariableLookup& lookup,
                                                                       std::string& problem);

/// Ignores SIGPIPE, so that writing to a closed socket fails with EPIPE: see worker.h. Returns 0 or
/// an errno value.
int ignore_sigpipe();

/// The recorder's JSON on one line, valid for arbitrary bytes. `epoch_seconds`: time of the
/// failure.
[[nodiscard]] std::string error_record(const std::string& message, const std::string& callstack,
                                       std::int64_t epoch_seconds);

/// Writes error_record() to TORCHELASTIC_ERROR_FILE atomically (temporary file, then rename).
/// Returns 0; ENOENT if no launcher set the variable; another errno value if writing failed.
int record_error(const std::string& message, const std::string& callstack = "");

/// Runs `body` and returns its result. An exception is recorded for the launcher's report and
/// printed to stderr, and the result is 1: `int main() { return ddprun::recorded([] { return
/// train(); }); }`
int recorded(const std::function<int()>& body);

// The link to ddprun: worker.h says what each call does and returns.
int step_done(std::int64_t step);
int ready();
int checkpoint_written(std::int64_t step, const std::string& path);
int handle_stop();
[[nodiscard]] int stop_requested();
[[nodiscard]] bool connected();
[[nodiscard]] int wait_for_stop(std::chrono::milliseconds timeout);

/// A round that this process takes part in, as worker.h describes it.
struct World : WorkerEnvironment {
  enum class Cause { kStart = 0, kFailure = 1 };
  Cause cause = Cause::kStart;
  int previous_rank = -1;  // in the round that it was in before; -1: in none
  int previous_world_size = -1;
  /// Those of the environment that have new values; empty in the round that it was started for.
  std::map<std::string, std::string> variables{};
};
int survive();
[[nodiscard]] int round_pending();
/// Returns 0; ETIMEDOUT; ENOTCONN; or EINVAL with a `problem`. Negative timeouts: for ever.
[[nodiscard]] int next_round(World& world, std::chrono::milliseconds timeout, std::string& problem);
/// At once unless this process is a spare. Returns 0 or ETIMEDOUT.
[[nodiscard]] int wait_for_place(std::chrono::milliseconds timeout);
/// Called in place of the one before it; empty: none is.
void on_round(std::function<void(int round, World::Cause cause)> callback);
/// `value` becomes what all ranks of the round agree on.
[[nodiscard]] int agree(const std::string& name, std::string& value,
                        std::chrono::milliseconds timeout);
void sockets_begin();
int sockets_end();
int abandon_sockets();

/// A section with a time-out, from its construction to its end.
class Section {
 public:
  Section(const std::string& name, std::chrono::milliseconds timeout);
  ~Section();
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
  /// Whether ddprun watches it.
  [[nodiscard]] bool watched() const { return number_ >= 0; }

 private:
  std::int64_t number_;
};

}  // namespace ddprun

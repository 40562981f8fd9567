// LaunchConfig: everything one `ddprun` command line means, after flags, PET_* variables and
// defaults were merged and checked (launcher/configure.hpp). The agent takes it as given. Plain
// data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/config/option_defaults.hpp"
#include "agent/config/rendezvous_config.hpp"
#include "base/clock.hpp"
#include "base/types.hpp"

namespace ddprun {

/// Which of a worker's output streams something applies to: torchrun's digits 0..3.
enum class Streams : std::uint8_t { kNone = 0, kStdout = 1, kStderr = 2, kBoth = 3 };

[[nodiscard]] constexpr bool has(Streams set, Streams one) {
  return (static_cast<int>(set) & static_cast<int>(one)) != 0;
}

/// --redirects or --tee: one choice for all local ranks, or one per named rank.
struct StreamChoice {
  Streams all = Streams::kNone;
  std::map<LocalRank, Streams> named;  // ranks not named get `all`
  [[nodiscard]] Streams of(LocalRank rank) const {
    const auto found = named.find(rank);
    return found == named.end() ? all : found->second;
  }
  [[nodiscard]] bool any() const {
    return all != Streams::kNone || std::any_of(named.begin(), named.end(), [](const auto& choice) {
             return choice.second != Streams::kNone;
           });
  }
};

/// How un-redirected output reaches the console: --console.
enum class Console {
  kQuoted,  // the agent passes stderr on byte for byte, so that the report can quote it
  kRaw,     // the worker inherits it
  kPrefix,  // whole lines, each with host and rank
  kRank0,   // the same for stderr; stdout of rank 0 as it is, of the others into files
  kChosen,  // not given: see choose_console()
};

/// How much ddprun itself writes.
enum class Verbosity {
  kQuiet,  // warnings and errors
  kUsual,
  kVerbose,  // each decision of the start with its reason, too
};

struct LogConfig {
  std::string dir;  // --log-dir; empty: a temporary one, "/dev/null": no files at all
  StreamChoice redirects;
  StreamChoice tee;
  std::optional<std::set<LocalRank>> console_ranks;  // --local-ranks-filter; unset: all ranks
  std::string prefix_template;              // of a tee'd line; never empty, macros not yet replaced
  std::vector<std::string> stdout_filters;  // --duplicate-stdout-filters
  std::vector<std::string> stderr_filters;
  Console console = Console::kQuoted;
  std::uint64_t bytes_max = 0;  // --log-max, of each log file; 0: no limit
  bool as_torchrun = false;     // --compat, or called torchrun: no look of our own by default
  bool coloured = false;        // what ddprun adds to lines of workers
  Verbosity verbosity = Verbosity::kUsual;
  bool redraws = false;      // the terminal obeys sequences (TERM)
  bool draws_waits = false;  // a line on the terminal of stderr says what is waited for
  /// Whether the user asked for files, which stay then: without --log-dir in TMPDIR, as torchrun's.
  [[nodiscard]] bool asks_for_files() const { return !dir.empty() || redirects.any() || tee.any(); }
};

/// Whether workers use the store that the agent serves (TORCHELASTIC_USE_AGENT_STORE).
enum class StoreHost { kAgent, kWorkerZero };

/// The command of a node as far as it is the same on every node of a run.
struct CommandIdentity {
  std::string fingerprint;  // equal for equal commands
  std::string program;      // the same without the arguments
  std::string text;         // for people: printable, at most kCommandBytesMax bytes
};

/// The workers of this node.
struct WorkerConfig {
  int count = 1;  // 1..kWorkersPerNodeMax
  std::string role;
  std::vector<std::string> command;  // argv of every worker, with macros; [0]: looked up in PATH
  std::string script{};              // the file in it that Python runs; empty: none
  CommandIdentity identity;          // of the command, compared with that of the run's other nodes
  bool commands_may_differ = false;  // unless this is set: --allow-different-commands
  std::vector<int> threads{};        // OMP_NUM_THREADS of each local rank; empty: as inherited
  std::vector<std::string> gpus{};   // --gpus: CUDA_VISIBLE_DEVICES of all; empty: as inherited
  /// --virtual-local-rank: the one device of each local rank; empty: off. On: LOCAL_RANK=0 and
  /// the device in CUDA_VISIBLE_DEVICES; DDPRUN_LOCAL_RANK is the real one.
  std::vector<std::string> virtual_devices{};
  std::vector<std::set<int>> cpus{};  // --numa-binding: those of each local rank; empty: all
  std::string command_reason{};       // why these, for --verbose
  std::string threads_reason{};
};

/// When and how workers are stopped and restarted.
struct StopConfig {
  int max_restarts = 0;
  Duration shutdown_timeout{};                            // from the stop signal to SIGKILL
  Duration straggler_timeout = kStragglerTimeoutDefault;  // from the last success to SIGTERM
  std::vector<int> signals;                               // --signals-to-handle
  std::string signals_text;  // the same as given, for TORCHELASTIC_SIGNALS_TO_HANDLE
  std::optional<Duration> finish_timeout{};  // from the first exit with 0 to a stop; unset: none
  std::optional<Duration> hang_timeout{};    // without progress, to a stop; unset: none
  std::optional<Duration> min_uptime{};      // --min-uptime; unset: off
  std::optional<Duration> sleep_timeout{};   // in state D, to the end of the run; unset: none
  /// --restart=failed: ranks that survive keep their process, and have this long to take the next
  /// round; unset: --restart=all.
  std::optional<Duration> rejoin_timeout{};
  int spares = 0;  // --spares: processes that wait for the place of a lost rank, with the above
  Duration failure_grace = kFailureGraceDefault;  // from a failure that ends the run to a signal
};

/// Where workers find their store.
struct StoreConfig {
  std::string master_addr;  // passed to workers: a name or an address, as given; empty: the round
                            // chooses it (MasterChoice::kRound)
  std::string listen_addr;  // the address literal behind it, on which the store listens; empty: the
                            // wildcard address, v4 and v6 (several nodes)
  std::uint16_t master_port = 0;  // 0: the kernel picks a new one in every round
  StoreHost host = StoreHost::kAgent;
  bool open = false;  // --store-open: every client may use it
};

/// The health check and the metrics of this ddprun.
struct HttpConfig {
  std::string address;  // a literal; empty: the wildcard address
  std::uint16_t port = 0;
  enum class Origin { kOption, kVariable };  // --http, TORCHELASTIC_HEALTH_CHECK_PORT
  Origin origin = Origin::kOption;
};

/// --warm: workers of a restart start from a template that has imported their modules.
struct WarmConfig {
  std::vector<std::string> preload{};  // --preload; empty: what a worker of round 1 has imported
  bool first = false;                  // before round 1, too
  bool ahead = true;                   // workers are forked before they are needed
  Duration after = kWarmAfterDefault;  // from the start of round 1 to that of the template
  std::string refused{};               // why workers start cold nevertheless; empty: they may not
};

struct LaunchConfig {
  RunId run_id;
  WorkerConfig workers;
  StopConfig stopping;
  StoreConfig store;
  LogConfig log;
  std::optional<RendezvousConfig> rendezvous;  // unset: a single node, without a coordinator
  std::optional<HttpConfig> http{};
  std::optional<WarmConfig> warm{};
  /// TORCHELASTIC_ENABLE_FILE_TIMER: the pipe for timers of workers, as given; empty: one is
  /// chosen.
  std::optional<std::string> timer_pipe{};  // unset: off
  bool torch_events = false;                // --event-log-handler=console: torchrun's, on stderr
  int pid = 0;                              // of the process that the user started; 0: this one
  int started = -1;          // a descriptor that gets the run id once all workers run; -1: none
  bool on_terminal = false;  // standard error is one
};

}  // namespace ddprun

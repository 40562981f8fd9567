// LaunchConfig: everything one `ddprun` command line means, after flags, PET_* variables and
// defaults were merged and checked (launcher/configure.hpp). The agent takes it as given. Plain
// data.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/certificates.hpp"
#include "base/clock.hpp"
#include "base/secret.hpp"
#include "base/types.hpp"

namespace ddprun {

// Defaults and limits of options; the help has the same figures from here.
// The template of --warm starts so long after the workers: until then the processors are theirs.
inline constexpr Duration kWarmAfterDefault = std::chrono::seconds(30);
// A rank that survives (--restart=failed) has this long to take the next round, unless
// --rejoin-timeout says otherwise; then it is killed and started again.
inline constexpr Duration kRejoinTimeoutDefault = std::chrono::seconds(60);
inline constexpr int kSparesMax = 1024;  // --spares
// SIGKILL follows SIGTERM after this, unless --shutdown-timeout says otherwise.
inline constexpr Duration kShutdownTimeoutDefault = std::chrono::seconds(30);
// --failure-grace: what ranks catch, print and save takes milliseconds to a second; those that wait
// for the lost one without an end are stopped then.
inline constexpr Duration kFailureGraceDefault = std::chrono::seconds(1);
// After a success, what a worker left behind has this long to end by itself, unless
// --straggler-timeout says otherwise; then SIGTERM, and after kStragglerGrace SIGKILL.
inline constexpr Duration kStragglerTimeoutDefault = std::chrono::seconds(10);

/// Where the coordinator is: a name, resolved at every attempt, or an address literal without
/// brackets.
struct CoordinatorAddress {
  std::string host;
  std::uint16_t port = 0;
};

/// MasterChoice is what chooses MASTER_ADDR and MASTER_PORT of a round.
enum class MasterChoice : std::uint8_t {
  kRound,  // c10d: a fresh store of the node with rank 0, on its address and a port of its own
  kFixed,  // static: those of StoreConfig, in every round; node rank 0 serves
};

/// --rdzv-backend=etcd-v3: the coordinator is elected there.
struct EtcdConfig {
  std::vector<CoordinatorAddress> endpoints;  // at least one
  std::string prefix = "/ddprun";             // of the keys
  std::string user;                           // empty: none
  std::string password_file;                  // empty: none
  std::string password{};                     // read from it at the start
  std::optional<Certificates> tls{};          // HTTPS; no paths: the system's CAs; unset: HTTP
  bool may_lead = true;                       // this node may run the coordinator
  std::string text;                           // "etcd h1:2379,h2:2379", for sentences
};

/// How this node finds the other nodes of its run.
struct RendezvousConfig {
  CoordinatorAddress coordinator;
  MasterChoice master = MasterChoice::kRound;
  int nodes_min = 1;
  int nodes_max = 1;
  std::string address;           // --local-addr, a literal; empty: the link's source address
  std::optional<int> node_rank;  // --node-rank; with static always
  std::optional<int>
      scheduler_index;        // this node's position in the scheduler's list, or in --hosts
  SharedSecret secret;        // of the run; null: none
  std::string secret_from{};  // who says so, for people; empty: there is none
  std::optional<Certificates> certificates{};  // in place of a secret; neither: clear text
  // The endpoint's host as given, if this node goes to its own coordinator by loopback, else empty:
  // a certificate names it, and other nodes should reach this node there.
  std::string given_host{};
  // Addresses of the endpoint's name that this node, which may coordinate, lacks: other nodes that
  // have one may coordinate, too.
  std::vector<std::string> namesakes{};
  std::optional<EtcdConfig> etcd{};  // it says where the coordinator is
  // Of a list of hosts: where each would coordinate the run; the first is `coordinator`'s. Else
  // none.
  std::vector<CoordinatorAddress> hosts{};
  // Tells runs of other lists apart: host:port of the first, as it is given. Empty for the list of
  // a scheduler, which may name a host differently on each node, and whose job has an id.
  std::string list_begins{};
  /// Its id was given, or is that of a job, and so tells it from other runs at the endpoint.
  bool run_is_named = false;
  bool fails_over = false;  // other nodes may coordinate the run after this coordinator
  bool stands_by = false;   // this one may
  // --rdzv-conf
  Duration join_timeout = std::chrono::seconds(600);
  Duration last_call_timeout = std::chrono::seconds(30);
  Duration keep_alive_interval = std::chrono::seconds(1);
  int keep_alive_max_attempt = 5;
  Duration coordinator_timeout = std::chrono::seconds(60);

  /// Of this node in `hosts`; none for the first, whose entry is the endpoint.
  [[nodiscard]] std::optional<CoordinatorAddress> own_entry() const {
    const auto own = static_cast<std::size_t>(node_rank.value_or(0));
    if (own == 0 || own >= hosts.size()) return std::nullopt;
    return hosts[own];
  }
};

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

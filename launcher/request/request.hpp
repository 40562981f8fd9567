// Request: what a command line, its variables and the defaults ask for, as typed values with their
// origins. Built once; nothing after it reads an option by name. Plain data and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "agent/proc/numa.hpp"
#include "base/environment.hpp"
#include "base/result.hpp"
#include "launcher/options/settings.hpp"
#include "rendezvous/coordinator/http.hpp"

namespace ddprun {

// HOST[:PORT], [V6], [V6]:PORT and bare V6, and what the text of a host means without a lookup.

inline constexpr std::uint16_t kC10dPort = 29400;  // the defaults, as in torchrun
inline constexpr std::uint16_t kStaticPort = 29500;
// The default rendezvous port is derived from the job and lies in this range, so that runs of
// several jobs on one node use different ports. Below the kernel's ephemeral range (32768) and
// torchrun's 29400 and 29500. The size is a prime.
inline constexpr std::uint16_t kSchedulerPortFirst = 21000;
inline constexpr std::uint16_t kSchedulerPortCount = 7993;
inline constexpr std::uint16_t kSchedulerPortLast = kSchedulerPortFirst + kSchedulerPortCount - 1;
static_assert(kSchedulerPortLast < 29400);

inline constexpr const char* kLoopbackV4 = "127.0.0.1";
inline constexpr const char* kLoopbackV6 = "::1";

struct Endpoint {
  std::string host;
  std::optional<std::uint16_t> port;
};

/// `name` is the name of the option in the sentence of an error.
[[nodiscard]] Result<Endpoint> parse_endpoint(const std::string& text, const std::string& name);

/// A name or an address without a port; an IPv6 address may have brackets. `shown`: the option with
/// its value. `port_option`: the one that takes a port.
[[nodiscard]] Result<std::string> parse_host(const std::string& text, const std::string& shown,
                                             const std::string& port_option = "");

/// As typed: HOST:PORT, [V6]:PORT, or without the port where there is none.
[[nodiscard]] std::string text_of(const Endpoint& endpoint);

/// An IPv4 or IPv6 address, with or without a zone, not a name.
[[nodiscard]] bool is_address_literal(const std::string& host);

/// 0.0.0.0 or ::, the wildcard addresses: a socket can be bound to them, but no host has them.
[[nodiscard]] bool is_wildcard_address(const std::string& host);

/// "gpu-01" and "gpu-01.cluster" may be one machine, "gpu-01.a" and "gpu-01.b" may not.
[[nodiscard]] bool same_host_name(const std::string& left, const std::string& right);

/// The loopback address that a host's text certainly means: a loopback literal, or localhost and
/// its aliases. nullopt for any other name, whatever it resolves to.
[[nodiscard]] std::optional<std::string> named_loopback(const std::string& host);

/// A port number 0..65535.
[[nodiscard]] std::optional<std::uint16_t> parse_port(const std::string& text);

// Nodes: how many, or which.

/// --nnodes: 0 < min <= max <= kNodesMax.
struct NodeRange {
  int min = 1;
  int max = 1;
};

/// Nodes that are known beforehand, in the same order on every one of them: --hosts, or the list of
/// a scheduler. Each is numbered by its position, and the first runs the coordinator.
struct HostList {
  std::vector<Endpoint> hosts;  // at least one; the first one's port is the coordinator's, or 29400
  std::size_t own = 0;          // this node's position, below hosts.size()
  NodeRange nodes;              // MAX is the number of hosts
  std::string source;           // its name in sentences: "--hosts", "SLURM_JOB_NODELIST"
};

/// N or MIN:MAX.
[[nodiscard]] Result<NodeRange> parse_nodes(const Origin& origin);

/// "4 nodes", "2 to 4 nodes", for sentences.
[[nodiscard]] std::string text_of(const NodeRange& nodes);

// --rdzv-conf: k1=v1,k2=v2. What the keys mean depends on the backend; a key that has nothing to
// limit there costs one line.

/// The given values, checked independently of the backend.
struct RendezvousConf {
  std::optional<Duration> join_timeout;
  std::optional<Duration> last_call_timeout;
  std::optional<Duration> keep_alive_interval;
  std::optional<int> keep_alive_max_attempt;
  std::optional<Duration> coordinator_timeout;
  std::optional<Duration> timeout;   // of the static backend
  std::optional<bool> is_host;       // whether this node runs the coordinator
  std::string user;                  // of etcd
  std::string password_file;         // the same
  std::string etcd_prefix;           // of the keys in etcd
  std::string protocol;              // of etcd: "http", "https"; empty: not given
  Certificates etcd_tls;             // with https; `shown` has the option and the key
  bool file_store = false;           // store_type=file: the endpoint is a path
  std::vector<std::string> keys;     // known ones, as given
  std::vector<std::string> unknown;  // ignored, with a warning
};

[[nodiscard]] Result<RendezvousConf> parse_conf(const Origin& origin);

/// The backend, or none.
enum class ConfUse { kSingleNode, kElastic, kStatic, kEtcd };

/// The given limits in place of the defaults, those of c10d or static.
void apply(const RendezvousConf& conf, ConfUse use, RendezvousConfig& config);

/// One line for each key that does nothing, with the reason. A single node waits for no other, so
/// there the keys are only checked.
[[nodiscard]] std::vector<std::string> conf_notes(const Setting<RendezvousConf>& conf, ConfUse use);

/// One line for the unknown keys, if there are any, with the known ones.
[[nodiscard]] std::vector<std::string> conf_warnings(const Setting<RendezvousConf>& conf);

// What each part of the launcher is asked for.

/// --nproc-per-node.
struct WorkerCount {
  enum class Kind { kNumber, kCpus, kGpus, kXpus, kAuto };
  Kind kind = Kind::kNumber;
  int number = 1;  // of kNumber: 1..kWorkersPerNodeMax
};

/// --gpus.
struct GpuChoice {
  std::vector<std::string> names{};  // indices, or UUIDs; empty: all
};
/// "GPU-4f..." or "MIG-4f...", not an index.
[[nodiscard]] bool is_gpu_uuid(const std::string& name);

struct WorkerRequest {
  Setting<WorkerCount> count;  // not given, but --gpus: one for each of these
  std::string role;
  Setting<bool> virtual_local_rank;
  Setting<std::optional<GpuChoice>> gpus;
  Setting<bool> share_gpus;
  bool compat = false;
  Setting<bool> module;
  Setting<bool> no_python;
  Setting<bool> run_path;
  Setting<std::optional<NumaMode>> numa;
  std::vector<std::string> program;  // the script and its arguments, as given; not empty
  bool commands_may_differ = false;
  bool local_rank_argument = false;  // --local-rank=N first, as torch.distributed.launch does
};

/// torchrun has this --rdzv-id where none is given, and so has any job.
inline constexpr std::string_view kDefaultRunId = "none";

enum class Backend { kStatic, kC10d, kEtcd };

/// Values that depend on the way in which nodes find each other are checked where they are used.
struct RendezvousRequest {
  Setting<NodeRange> nodes;
  Setting<Backend> backend;
  Setting<std::optional<Endpoint>> endpoint;  // unset: empty, or unused (--standalone, --hosts)
  std::vector<Endpoint> endpoints{};          // all that it names; the first is `endpoint`
  Setting<std::string> run_id;
  Setting<RendezvousConf> conf;
  Setting<std::string> secret_file;
  Setting<std::string> tls_cert;
  Setting<std::string> tls_key;
  Setting<std::string> tls_ca;
  Setting<std::int64_t> node_rank;
  Setting<std::string> master_addr;
  Setting<std::int64_t> master_port;
  Setting<std::string> local_addr;
  Setting<std::string> hosts;
  Setting<bool> standalone;
  bool store_open = false;
  Setting<coordinator::StatusAccess> status{};
  StoreHost store_host = StoreHost::kAgent;  // where a round chooses the store's address
  std::optional<HostList> scheduler_hosts;   // unless the options describe the rendezvous
  bool leaves_no_trace = false;              // --dry-run
};

struct StopRequest {
  StopConfig config;
  Origin max_restarts{};
  std::vector<std::string> notes{};  // unknown signal names
};

/// The word of --console.
[[nodiscard]] std::string_view name_of(Console console);

struct LogRequest {
  LogConfig config;  // its directory as given
  Origin dir;
  Origin stdout_filters;
  Origin stderr_filters;
  Origin console_ranks;
};

/// --warm and --preload.
struct WarmRequest {
  WarmConfig config;
  bool force = false;  // although a GPU is visible
};

struct Request {
  RendezvousRequest rendezvous;
  WorkerRequest workers;
  StopRequest stopping;
  LogRequest logs;
  std::optional<HttpConfig> http;
  std::optional<WarmRequest> warm;        // unset: off
  std::optional<std::string> timer_pipe;  // see LaunchConfig, as the next one
  bool torch_events = false;
  std::vector<std::string> notes{};  // variables that are ignored
};

/// `program` is not empty. An error names the option or variable.
[[nodiscard]] Result<Request> parse_request(const Settings& settings,
                                            const std::vector<std::string>& program,
                                            const Environment& environment);

/// The value of --nproc-per-node, whether given or supplied by a scheduler.
[[nodiscard]] Result<WorkerCount> parse_worker_count(const Origin& origin);

}  // namespace ddprun

// Request: what a command line, its variables and the defaults ask for, as typed values with their
// origins. Built once; nothing after it reads an option by name. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "agent/proc/numa.hpp"
#include "base/environment.hpp"
#include "base/result.hpp"
#include "launcher/options/settings.hpp"
#include "launcher/rendezvous/conf.hpp"
#include "launcher/rendezvous/endpoint.hpp"
#include "launcher/rendezvous/nodes.hpp"
#include "launcher/setting.hpp"
#include "rendezvous/coordinator/status_access.hpp"

namespace ddprun {

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
  Origin max_restarts;
  std::vector<std::string> notes;  // unknown signal names
};

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

/// "0".."3", or RANK:MASK(,RANK:MASK)* where ranks that are not named get 0; nullopt for any other
/// text.
[[nodiscard]] std::optional<StreamChoice> parse_streams(const std::string& text);

}  // namespace ddprun

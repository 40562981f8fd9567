#include "launcher/request.hpp"

#include <array>
#include <utility>

#include "base/limits.hpp"
#include "launcher/options/values.hpp"
#include "launcher/request_parts.hpp"
#include "launcher/usage.hpp"
#include "launcher/workers/gpus.hpp"

namespace ddprun {
namespace {

using Option = OptionId;

Setting<std::string> text_setting(const Settings& settings, Option option) {
  return {settings.origin(option), settings.text(option)};
}

Setting<bool> flag_setting(const Settings& settings, Option option) {
  return {settings.origin(option), settings.on(option)};
}

Setting<std::int64_t> integer_setting(const Settings& settings, Option option) {
  return {settings.origin(option), settings.integer(option)};
}

template <class Value>
Result<void> parse_setting(const Settings& settings, Option option,
                           Result<Value> (*parse)(const Origin&), Setting<Value>& setting) {
  Origin origin = settings.origin(option);
  auto value = parse(origin);
  if (!value) return value.error();
  setting = {std::move(origin), std::move(*value)};
  return {};
}

Result<Backend> parse_backend(const Origin& origin) {
  if (origin.text == "static") return Backend::kStatic;
  if (origin.text == "c10d") return Backend::kC10d;
  if (origin.text == "etcd-v3") return Backend::kEtcd;
  if (origin.text == "etcd" || origin.text == "etcd-v2") {
    return usage(
        origin.shown() +
        ": ddprun uses etcd's v3 API: pass --rdzv-backend=etcd-v3 "
        "--rdzv-endpoint=HOST:2379,HOST:2379; without etcd, run ddprun-rdzvd on a host that "
        "all nodes can reach, and pass --rdzv-backend=c10d --rdzv-endpoint=HOST");
  }
  return usage(origin.quoted() + " is not one of static, c10d, etcd-v3");
}

/// Several are the servers of etcd.
Result<std::vector<Endpoint>> parse_endpoints(const Origin& origin) {
  std::vector<Endpoint> endpoints;
  if (origin.text.empty()) return endpoints;
  for (const std::string& part : split_list(origin.text)) {
    auto endpoint = parse_endpoint(part, origin.name);
    if (!endpoint && part.empty()) return usage(origin.shown() + ": an endpoint is empty");
    if (!endpoint) return endpoint.error();
    endpoints.push_back(std::move(*endpoint));
  }
  return endpoints;
}

Result<std::optional<Endpoint>> parse_static_endpoint(const Origin& origin) {
  if (origin.text.empty()) return std::optional<Endpoint>();
  if (origin.text.find(',') != std::string::npos) {
    return usage(origin.shown() +
                 ": the static backend has one endpoint, node 0; several are the servers of "
                 "--rdzv-backend=etcd-v3");
  }
  auto endpoint = parse_endpoint(origin.text, origin.name);
  if (!endpoint) return endpoint.error();
  return std::optional(std::move(*endpoint));
}

/// An empty option is a list whose variable was unset in the shell.
Result<std::string> hosts_text(const Settings& settings) {
  const std::string& text = settings.text(Option::kHosts);
  if (!text.empty() || !settings.given(Option::kHosts)) return text;
  return usage(settings.origin(Option::kHosts).quoted() +
               " names no host: list the hosts of all nodes, HOST,HOST, or omit it");
}

StoreHost shared_store(const Environment& environment) {
  const bool off = value_or(environment, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "0") == "1";
  return off ? StoreHost::kWorkerZero : StoreHost::kAgent;
}

Result<RendezvousRequest> parse_rendezvous(const Settings& settings,
                                           const Environment& environment) {
  RendezvousRequest request;
  request.run_id = text_setting(settings, Option::kRdzvId);
  request.secret_file = text_setting(settings, Option::kRdzvSecretFile);
  request.tls_cert = text_setting(settings, Option::kRdzvTlsCert);
  request.tls_key = text_setting(settings, Option::kRdzvTlsKey);
  request.tls_ca = text_setting(settings, Option::kRdzvTlsCa);
  request.node_rank = integer_setting(settings, Option::kNodeRank);
  request.master_addr = text_setting(settings, Option::kMasterAddr);
  request.master_port = integer_setting(settings, Option::kMasterPort);
  if (!request.master_port.given) request.master_port.value = kStaticPort;
  request.local_addr = text_setting(settings, Option::kLocalAddr);
  auto hosts = hosts_text(settings);
  if (!hosts) return hosts.error();
  request.hosts = {settings.origin(Option::kHosts), std::move(*hosts)};
  request.standalone = flag_setting(settings, Option::kStandalone);
  request.endpoint = {settings.origin(Option::kRdzvEndpoint), std::nullopt};
  request.store_open = settings.on(Option::kStoreOpen);
  // Its text is one of the choices.
  request.status = {settings.origin(Option::kStatus),
                    coordinator::parse_status_access(settings.text(Option::kStatus)).value()};
  request.store_host = shared_store(environment);
  auto parsed = parse_setting(settings, Option::kNnodes, &parse_nodes, request.nodes);
  if (parsed && request.standalone.value) {  // which replaces it, whatever it is
    request.backend = {settings.origin(Option::kRdzvBackend), Backend::kStatic};
  } else if (parsed) {
    parsed = parse_setting(settings, Option::kRdzvBackend, &parse_backend, request.backend);
  }
  if (parsed) parsed = parse_setting(settings, Option::kRdzvConf, &parse_conf, request.conf);
  // With store_type=file it is a path, which plan_c10d() reads.
  const bool is_path =
      parsed && request.conf.value.file_store && request.backend.value == Backend::kC10d;
  const bool is_used = !is_path && !request.standalone.value && request.hosts.value.empty();
  if (parsed && is_used && request.backend.value != Backend::kStatic) {
    auto endpoints = parse_endpoints(request.endpoint);
    if (!endpoints) return endpoints.error();
    if (!endpoints->empty()) request.endpoint.value = endpoints->front();
    request.endpoints = std::move(*endpoints);
  } else if (parsed && is_used) {
    parsed =
        parse_setting(settings, Option::kRdzvEndpoint, &parse_static_endpoint, request.endpoint);
  }
  if (!parsed) return parsed.error();
  return request;
}

/// --numa-binding; its value is one of the choices.
Setting<std::optional<NumaMode>> numa_setting(const Settings& settings) {
  constexpr std::array<std::pair<std::string_view, NumaMode>, 4> kModes{
      {{"node", NumaMode::kNode},
       {"socket", NumaMode::kSocket},
       {"exclusive", NumaMode::kExclusive},
       {"core-complex", NumaMode::kCoreComplex}}};
  Setting<std::optional<NumaMode>> setting{settings.origin(Option::kNumaBinding), std::nullopt};
  for (const auto& [name, mode] : kModes) {
    if (setting.text == name) setting.value = mode;
  }
  return setting;
}

/// Without --nproc-per-node the workers are as many as the chosen devices, whatever a scheduler
/// says.
Result<void> take_gpus(const Settings& settings, WorkerRequest& request) {
  const Origin origin = settings.origin(Option::kGpus);
  request.share_gpus = flag_setting(settings, Option::kShareGpus);
  if (origin.given) {
    auto choice = parse_gpus(origin);
    if (!choice) return choice.error();
    request.gpus = {origin, std::move(*choice)};
  }
  if (!request.gpus.value) {
    if (!request.share_gpus.value || !settings.on_command_line(Option::kShareGpus)) return {};
    return usage(request.share_gpus.name + " needs --gpus, which says what is shared");
  }
  if (!request.count.given) request.count = {origin, {WorkerCount::Kind::kGpus}};
  return {};
}

Result<WorkerRequest> parse_workers(const Settings& settings,
                                    const std::vector<std::string>& program) {
  WorkerRequest request;
  auto count = parse_setting(settings, Option::kNprocPerNode, &parse_worker_count, request.count);
  if (!count) return count.error();
  request.role = settings.text(Option::kRole);
  request.virtual_local_rank = flag_setting(settings, Option::kVirtualLocalRank);
  auto gpus = take_gpus(settings, request);
  if (!gpus) return gpus.error();
  request.compat = settings.on(Option::kCompat);
  request.module = flag_setting(settings, Option::kModule);
  request.no_python = flag_setting(settings, Option::kNoPython);
  request.run_path = flag_setting(settings, Option::kRunPath);
  request.numa = numa_setting(settings);
  request.program = program;
  request.commands_may_differ = settings.on(Option::kAllowDifferentCommands);
  return request;
}

}  // namespace

std::string given_names(std::initializer_list<const Origin*> candidates) {
  std::vector<std::string> names;
  for (const Origin* candidate : candidates) {
    if (candidate->given) names.push_back(candidate->name);
  }
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  }
  return text;
}

Result<WorkerCount> parse_worker_count(const Origin& origin) {
  using Kind = WorkerCount::Kind;
  if (origin.text == "cpu") return WorkerCount{Kind::kCpus};
  if (origin.text == "gpu") return WorkerCount{Kind::kGpus};
  if (origin.text == "auto") return WorkerCount{Kind::kAuto};
  if (origin.text == "xpu") return WorkerCount{Kind::kXpus};
  const auto number = parse_integer(origin.text);
  if (!number || *number < 1 || *number > kWorkersPerNodeMax) {
    return usage(origin.quoted() + " is neither cpu, gpu, xpu, auto nor a number from 1 to " +
                 std::to_string(kWorkersPerNodeMax));
  }
  return WorkerCount{Kind::kNumber, static_cast<int>(*number)};
}

Result<Request> parse_request(const Settings& settings, const std::vector<std::string>& program,
                              const Environment& environment) {
  auto rendezvous = parse_rendezvous(settings, environment);
  if (!rendezvous) return rendezvous.error();
  auto workers = parse_workers(settings, program);
  if (!workers) return workers.error();
  auto stopping = parse_stopping(settings, environment);
  if (!stopping) return stopping.error();
  auto logs = parse_logs(settings, environment);
  if (!logs) return logs.error();
  auto events = parse_event_handler(settings, environment);
  if (!events) return events.error();
  auto http = parse_http(settings, environment);
  if (!http) return http.error();
  auto warm = parse_warm(settings);
  if (!warm) return warm.error();
  return Request{std::move(*rendezvous),
                 std::move(*workers),
                 std::move(*stopping),
                 std::move(*logs),
                 std::move(*http),
                 std::move(*warm),
                 parse_timer_pipe(environment),
                 *events,
                 health_port_note(settings, environment)};
}

}  // namespace ddprun

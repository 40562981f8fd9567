// agent_driver WORKERS [key=value...] -- COMMAND...: run_agent() behind the simplest possible
// command line, so that the agent is tested without the launcher. Keys: restarts, timeout_ms,
// straggler_ms, port, log, log_max, finish_ms, redirects, store; for several nodes: rdzv (port of
// the coordinator on 127.0.0.1), nodes (MIN:MAX), node_rank, join_ms, host (a file: the coordinator
// runs here, on a free port that is written into the file).
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "agent/output/log.hpp"
#include "agent/proc/files.hpp"
#include "agent/run.hpp"
#include "base/random_uuid.hpp"
#include "net/listen.hpp"
#include "rendezvous/coordinator/server.hpp"

namespace {

using namespace ddprun;

Result<Coordinator> host(boost::asio::any_io_executor executor, LaunchConfig& config,
                         const std::string& file) {
  if (file.empty()) return Coordinator();
  const auto loopback = boost::asio::ip::address_v4::loopback();
  auto listener = net::listen(executor, loopback, config.store.master_port);
  if (!listener) return listener.error();
  coordinator::ServerOptions options;
  options.only_run = config.run_id;
  options.own_agent = AgentId(uuid_of_process());
  auto server =
      std::make_unique<coordinator::Server>(executor, std::move(*listener), std::move(options));
  if (const auto started = server->start(); !started) return started.error();
  config.rendezvous->coordinator.port = server->endpoint().port();
  const std::string port = std::to_string(server->endpoint().port());
  if (const auto written = leave_file(file, port + "\n"); !written) return written.error();
  return server;
}

LaunchConfig default_config() {
  LaunchConfig config;
  config.run_id = RunId("test-run");
  config.workers.role = "default";
  config.stopping.shutdown_timeout = std::chrono::seconds(30);
  config.stopping.signals = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
  config.stopping.signals_text = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";
  config.store.master_addr = "127.0.0.1";
  config.store.listen_addr = "127.0.0.1";
  config.log.prefix_template = "[${role_name}${local_rank}]:";
  return config;
}

void apply_to_rendezvous(LaunchConfig& config, const std::string& key, const std::string& value) {
  const bool wanted = key == "rdzv" || key == "host";
  if (!config.rendezvous && !wanted) return;
  if (!config.rendezvous) config.rendezvous.emplace();
  RendezvousConfig& rendezvous = *config.rendezvous;
  rendezvous.coordinator.host = "127.0.0.1";
  if (key == "rdzv") rendezvous.coordinator.port = static_cast<std::uint16_t>(std::stoi(value));
  if (key == "nodes") {
    rendezvous.nodes_min = std::stoi(value);
    rendezvous.nodes_max = std::stoi(value.substr(value.find(':') + 1));
  }
  if (key == "node_rank") rendezvous.node_rank = std::stoi(value);
  if (key == "join_ms") rendezvous.join_timeout = std::chrono::milliseconds(std::stoi(value));
}

void apply(LaunchConfig& config, const std::string& key, const std::string& value) {
  if (key == "restarts") config.stopping.max_restarts = std::stoi(value);
  if (key == "timeout_ms")
    config.stopping.shutdown_timeout = std::chrono::milliseconds(std::stoi(value));
  if (key == "port") config.store.master_port = static_cast<std::uint16_t>(std::stoi(value));
  if (key == "straggler_ms") {
    config.stopping.straggler_timeout = std::chrono::milliseconds(std::stoi(value));
  }
  if (key == "log") config.log.dir = value;
  if (key == "finish_ms")
    config.stopping.finish_timeout = std::chrono::milliseconds(std::stoi(value));
  if (key == "log_max") config.log.bytes_max = std::stoull(value);
  if (key == "redirects") config.log.redirects.all = static_cast<Streams>(std::stoi(value));
  if (key == "tee") config.log.tee.all = static_cast<Streams>(std::stoi(value));
  if (key == "console" && value == "raw") config.log.console = Console::kRaw;
  if (key == "store" && value == "worker") config.store.host = StoreHost::kWorkerZero;
  apply_to_rendezvous(config, key, value);
}

}  // namespace

int main(int argc, char** argv) {
  LaunchConfig config = default_config();
  if (argc < 2) return 2;
  config.workers.count = std::atoi(argv[1]);
  std::string host_file;
  int at = 2;
  for (; at < argc && std::string(argv[at]) != "--"; ++at) {
    const std::string option = argv[at];
    const auto equals = option.find('=');
    const std::string key = option.substr(0, equals);
    if (key == "host") host_file = option.substr(equals + 1);
    apply(config, key, option.substr(equals + 1));
  }
  config.workers.command.assign(argv + std::min(at + 1, argc), argv + argc);
  if (config.workers.command.empty()) return 2;
  const auto logger = make_logger();
  return run_agent(config, read_environment(environ), *logger,
                   [&](auto executor) { return host(executor, config, host_file); });
}

// agent_driver WORKERS [key=value...] -- COMMAND...: run_agent() behind the simplest possible
// command line, so that the agent is tested without the launcher. Keys: restarts, timeout_ms, port,
// log, redirects, store.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "agent/log.hpp"
#include "agent/run.hpp"

namespace {

using namespace ddprun;

LaunchConfig default_config() {
  LaunchConfig config;
  config.run_id = RunId("test-run");
  config.role = "default";
  config.shutdown_timeout = std::chrono::seconds(30);
  config.stop_signals = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
  config.stop_signals_text = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";
  config.master_addr = "127.0.0.1";
  config.listen_addr = "127.0.0.1";
  config.log.prefix_template = "[${role_name}${local_rank}]:";
  return config;
}

void apply(LaunchConfig& config, const std::string& key, const std::string& value) {
  if (key == "restarts") config.max_restarts = std::stoi(value);
  if (key == "timeout_ms") config.shutdown_timeout = std::chrono::milliseconds(std::stoi(value));
  if (key == "port") config.master_port = static_cast<std::uint16_t>(std::stoi(value));
  if (key == "log") config.log.dir = value;
  if (key == "redirects") config.log.redirects.all = static_cast<Streams>(std::stoi(value));
  if (key == "store" && value == "worker") config.store_host = StoreHost::kWorkerZero;
}

}  // namespace

int main(int argc, char** argv) {
  LaunchConfig config = default_config();
  if (argc < 2) return 2;
  config.workers = std::atoi(argv[1]);
  int at = 2;
  for (; at < argc && std::string(argv[at]) != "--"; ++at) {
    const std::string option = argv[at];
    const auto equals = option.find('=');
    apply(config, option.substr(0, equals), option.substr(equals + 1));
  }
  config.command.assign(argv + std::min(at + 1, argc), argv + argc);
  if (config.command.empty()) return 2;
  config.name = config.command.front();
  const auto logger = make_logger();
  return run_agent(config, read_environment(environ), *logger);
}

#include "launcher/workers/warm.hpp"

#include "base/count_text.hpp"
#include "launcher/workers/command.hpp"

namespace ddprun {

WarmConfig configure_warm(const WarmRequest& request, const LaunchConfig& launch,
                          const Machine& machine) {
  WarmConfig config = request.config;
  const auto python = choose_python(machine);
  const std::vector<std::string>& command = launch.workers.command;
  // The interpreter is the one that ddprun chose, with the one option that ddprun gives it: others,
  // such as -E, could keep it from importing the hook, and the template would run the program.
  const bool chosen =
      python && command.size() >= 3 && command[0] == python->path && command[1] == "-u";
  if (chosen && shown_command(command)[2] == "--run-path") {
    config.refused = "--run-path starts a Python program of ddprun's, which runs the script";
    return config;
  }
  if (!chosen || (command[2].starts_with("-") && command[2] != "-m")) {
    config.refused = "the workers do not run under the Python that ddprun chooses, as it runs them";
    return config;
  }
  const bool restarts = launch.stopping.max_restarts > 0 || launch.rendezvous.has_value();
  if (!restarts && !config.first) {
    config.refused = "no worker is ever started again, because --max-restarts is 0";
    return config;
  }
  if (!launch.workers.cpus.empty()) {
    config.refused = "--numa-binding starts each worker on CPUs of its own";
    return config;
  }
  const int gpus = request.force ? 0 : machine.count_gpus();
  if (gpus > 0) {
    config.refused = count_text(gpus, "GPU") + (gpus == 1 ? " is" : " are") +
                     " visible, and a module that uses one while it is imported cannot be shared; "
                     "--warm=force tries it";
  }
  return config;
}

}  // namespace ddprun

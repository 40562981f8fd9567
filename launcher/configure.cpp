#include "launcher/configure.hpp"

#include <utility>

#include "launcher/options/scan.hpp"
#include "launcher/options/settings.hpp"
#include "launcher/rendezvous/plan.hpp"
#include "launcher/schedulers/scheduled.hpp"
#include "launcher/workers/command.hpp"
#include "launcher/workers/command_identity.hpp"
#include "launcher/workers/count.hpp"
#include "launcher/workers/logs.hpp"
#include "launcher/workers/side_services.hpp"
#include "launcher/workers/stopping.hpp"

namespace ddprun {
namespace {

using Id = OptionId;

Result<void> check_event_handler(const Settings& settings) {
  const std::string& name = settings.text(Id::kEventLogHandler);
  if (name == "null") return {};
  const std::string shown = settings.shown(Id::kEventLogHandler);
  if (name == "console" || name == "dynamic_rendezvous") {
    return Error{ErrorKind::kUnsupported, shown + " is not supported yet; null works"};
  }
  return Error{ErrorKind::kUsage, shown + ": no such handler; null works"};
}

void append(std::vector<std::string>& notes, const std::vector<std::string>& more) {
  notes.insert(notes.end(), more.begin(), more.end());
}

Result<void> fill_workers(Launch& launch, const Settings& settings, const Machine& machine) {
  auto workers = count_workers(settings, machine);
  if (!workers) return workers.error();
  auto devices = virtual_devices(settings, *workers, machine.environment());
  if (!devices) return devices.error();
  WorkerConfig& config = launch.config.workers;
  config.count = *workers;
  config.virtual_devices = std::move(*devices);
  config.omp_threads = choose_threads(*workers, machine);
  config.role = settings.text(Id::kRole);
  return {};
}

Result<void> fill_rendezvous(Launch& launch, const Scheduled& scheduled, const Machine& machine) {
  auto plan = plan_rendezvous(scheduled, machine);
  if (!plan) return plan.error();
  launch.config.run_id = plan->run_id;
  launch.config.store = plan->store;
  launch.config.rendezvous = plan->rendezvous;
  launch.host = plan->host;
  append(launch.notes, plan->notes);
  append(launch.warnings, plan->warnings);
  return {};
}

Result<void> fill_stopping(Launch& launch, const Settings& settings, const Machine& machine) {
  auto stopping = choose_stopping(settings, machine.environment());
  if (!stopping) return stopping.error();
  launch.config.stopping = stopping->config;
  append(launch.notes, stopping->notes);
  return {};
}

Result<void> fill_logs(Launch& launch, const Settings& settings, const Machine& machine) {
  auto log = choose_logs(settings, launch.config.workers.count, machine);
  if (!log) return log.error();
  launch.config.log = *log;
  return {};
}

/// The order of the checks is the order in which a user would want to hear of mistakes.
Result<Launch> fill(const Settings& given, const Machine& machine) {
  auto scheduled = ask_scheduler(given, machine);
  if (!scheduled) return scheduled.error();
  const Settings& settings = scheduled->settings;
  Launch launch;
  launch.notes = scheduled->notes;
  auto met = fill_rendezvous(launch, *scheduled, machine);
  if (!met) return met.error();
  for (const auto step : {&fill_workers, &fill_stopping, &fill_logs}) {
    auto done = (*step)(launch, settings, machine);
    if (!done) return done.error();
  }
  auto events = check_event_handler(settings);
  if (!events) return events.error();
  auto services = check_side_services(machine.environment());
  if (!services) return services.error();
  return launch;
}

}  // namespace

Result<Intent> configure(const std::vector<std::string>& words, const Machine& machine) {
  auto line = scan(words);
  if (!line) return line.error();
  if (line->action == Id::kHelp) return Intent(ShowHelp{});
  if (line->action == Id::kVersion) return Intent(ShowVersion{});
  auto settings = Settings::merge(*line, machine.environment());
  if (!settings) return settings.error();
  if (line->program.empty()) {
    return Error{ErrorKind::kUsage,
                 "nothing to run: training_script is missing (ddprun [options] training_script "
                 "[training_script_args])"};
  }
  auto launch = fill(*settings, machine);
  if (!launch) return launch.error();
  auto command = worker_command(*settings, line->program, machine);
  if (!command) return command.error();
  WorkerConfig& workers = launch->config.workers;
  workers.identity = identify_command(*command, machine.host_name());
  workers.command = std::move(*command);
  workers.commands_may_differ = settings->on(Id::kAllowDifferentCommands);
  return Intent(std::move(*launch));
}

}  // namespace ddprun

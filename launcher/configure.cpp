#include "launcher/configure.hpp"

#include <utility>

#include "base/macros.hpp"
#include "launcher/options/help.hpp"
#include "launcher/options/scan.hpp"
#include "launcher/options/settings.hpp"
#include "launcher/request.hpp"
#include "launcher/schedulers/scheduled.hpp"
#include "launcher/usage.hpp"
#include "launcher/workers/command.hpp"
#include "launcher/workers/config.hpp"
#include "launcher/workers/warm.hpp"

namespace ddprun {
namespace {

constexpr const char* kLaunchIsDeprecated =
    "torch.distributed.launch is deprecated, and so is this form of it: start ddprun, and read "
    "LOCAL_RANK from the environment instead of --local-rank";

void append(std::vector<std::string>& notes, const std::vector<std::string>& more) {
  notes.insert(notes.end(), more.begin(), more.end());
}

/// A process that does not know its place yet cannot have what depends on it.
Result<void> check_spares(const StopConfig& stopping, const WorkerConfig& workers) {
  if (stopping.spares == 0) return {};
  if (!workers.virtual_devices.empty()) {
    return usage(
        "--spares: with --virtual-local-rank a process is started for one device; leave "
        "one of them out");
  }
  if (!workers.cpus.empty()) {
    return usage(
        "--spares: with --numa-binding a process is started on the CPUs of one local rank; leave "
        "one of them out");
  }
  for (const std::string& argument : workers.command) {
    const auto with = [&](const char* rank) {
      return substitute(argument, {{"local_rank", rank}});
    };
    if (with("0") == with("1")) continue;
    return usage("--spares: " + argument +
                 " is different for each rank, which a spare does not "
                 "know when it is started; use LOCAL_RANK in its place");
  }
  return {};
}

/// The order of the checks is the order in which a user would want to read about mistakes.
Result<Launch> plan_launch(Request& request, const Machine& machine) {
  auto scheduled = fill_from_scheduler(request, machine);
  if (!scheduled) return scheduled.error();
  auto plan = plan_rendezvous(request, machine);
  if (!plan) return plan.error();
  auto workers = configure_workers(request.workers, machine);
  if (!workers) return workers.error();
  auto spares = check_spares(request.stopping.config, *workers);
  if (!spares) return spares.error();
  auto log = configure_logs(request.logs, workers->count, machine);
  if (!log) return log.error();
  Launch launch{{std::move(plan->run_id), std::move(*workers), std::move(request.stopping.config),
                 std::move(plan->store), std::move(*log), std::move(plan->rendezvous),
                 std::move(request.http)},
                std::move(plan->coordinator),
                std::move(*scheduled),
                std::move(plan->warnings)};
  if (request.warm) {
    launch.config.warm = configure_warm(*request.warm, launch.config, machine);
  }
  launch.config.timer_pipe = std::move(request.timer_pipe);
  launch.config.torch_events = request.torch_events;
  const StopConfig& stopping = launch.config.stopping;
  if (stopping.spares > 0 && stopping.max_restarts == 0 && !launch.config.rendezvous) {
    launch.notes.push_back("--spares not used: --max-restarts is 0, so a lost rank ends the run");
  }
  if (std::string note = script_note(launch.config.workers.script, machine); !note.empty()) {
    launch.notes.push_back(std::move(note));
  }
  append(launch.notes, plan->notes);
  append(launch.notes, unused_with_run_path(request.workers));
  append(launch.notes, request.stopping.notes);
  append(launch.notes, request.notes);
  return launch;
}

}  // namespace

Result<Intent> configure(const std::vector<std::string>& words, const Machine& machine,
                         Called called) {
  auto line = scan(words);
  if (!line) return line.error();
  if (line->action == OptionId::kHelp) return Intent(ShowHelp{});
  if (line->action == OptionId::kVersion) return Intent(ShowVersion{});
  if (line->action == OptionId::kPrintCompletion) return Intent(ShowCompletion{line->action_value});
  auto settings = Settings::merge(*line, machine.environment());
  if (!settings) return settings.error();
  if (line->program.empty()) {
    return usage("nothing to run: training_script is missing (" + usage_line() + ")");
  }
  auto request = parse_request(*settings, line->program, machine.environment());
  if (!request) return request.error();
  request->workers.local_rank_argument =
      called == Called::kLaunch && !settings->on(OptionId::kUseEnv);
  auto launch = plan_launch(*request, machine);
  if (!launch) return launch.error();
  if (called == Called::kLaunch) launch->warnings.emplace_back(kLaunchIsDeprecated);
  return Intent(std::move(*launch));
}

}  // namespace ddprun

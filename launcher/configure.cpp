#include "launcher/configure.hpp"

#include <initializer_list>
#include <utility>

#include "base/macros.hpp"
#include "launcher/options/help.hpp"
#include "launcher/options/scan.hpp"
#include "launcher/options/settings.hpp"
#include "launcher/options/values.hpp"
#include "launcher/request/request.hpp"
#include "launcher/schedulers/placement.hpp"
#include "launcher/workers/config.hpp"

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
        "--spares: where each worker sees one device (--virtual-local-rank, MIG instances, "
        "--share-gpus) a process is started for one; leave one of them out");
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

/// What a command line asks for, with what a scheduler supplies, and notes about that.
struct Asked {
  Request request;
  std::vector<std::string> notes;
};

Result<Asked> ask_for(Settings& settings, const std::vector<std::string>& program,
                      const Machine& machine) {
  std::vector<std::string> left_out = settings.leave_out_excluded();
  auto request = parse_request(settings, program, machine.environment());
  if (!request) return request.error();
  if (!settings.text(OptionId::kConfig).empty()) {
    auto nodes = leave_out_nodes(settings, request->rendezvous, machine);
    if (!nodes) return nodes.error();
    append(left_out, *nodes);
    request = parse_request(settings, program, machine.environment());
    if (!request) return request.error();
  }
  auto scheduled = fill_from_scheduler(*request, machine);
  if (!scheduled) return scheduled.error();
  append(*scheduled, left_out);
  return Asked{std::move(*request), std::move(*scheduled)};
}

/// The order of the checks is the order in which a user would want to read about mistakes.
Result<Launch> plan_launch(Asked& asked, const Machine& machine) {
  Request& request = asked.request;
  auto plan = plan_rendezvous(request, machine);
  if (!plan) return plan.error();
  auto workers = configure_workers(request.workers, machine);
  if (!workers) return workers.error();
  auto spares = check_spares(request.stopping.config, *workers);
  if (!spares) return spares.error();
  auto log = configure_logs(request.logs, machine);
  if (!log) return log.error();
  Launch launch{{std::move(plan->run_id), std::move(*workers), std::move(request.stopping.config),
                 std::move(plan->store), std::move(*log), std::move(plan->rendezvous),
                 std::move(request.http)},
                std::move(plan->coordinator),
                request.rendezvous.status.value,
                std::move(asked.notes),
                std::move(plan->warnings)};
  launch.preview = {machine.host_name(), std::move(plan->hosts), plan->run_id_is_new,
                    launch.coordinator.has_value(), plan->coordinator_is_open};
  if (request.warm) {
    launch.config.warm = configure_warm(*request.warm, launch.config, machine);
  }
  launch.config.timer_pipe = std::move(request.timer_pipe);
  launch.config.torch_events = request.torch_events;
  const StopConfig& stopping = launch.config.stopping;
  if (stopping.spares > 0 && stopping.max_restarts == 0 && !launch.config.rendezvous) {
    launch.notes.push_back("--spares not used: --max-restarts is 0, so a lost rank ends the run");
  }
  const std::string& script = launch.config.workers.script;
  std::string note = request.workers.run_path.value ? "" : script_note(script, machine);
  if (!note.empty()) {
    launch.notes.push_back(std::move(note));
  }
  append(launch.notes, plan->notes);
  append(launch.notes, notes_on_devices(request.workers, launch.config.workers));
  append(launch.notes, notes_on_logs(request.logs, launch.config.log, launch.config.workers.count));
  append(launch.notes, unused_with_run_path(request.workers));
  append(launch.notes, request.stopping.notes);
  append(launch.notes, request.notes);
  return launch;
}

Result<Launch::Answer> answer_of(const Settings& settings) {
  const bool json = settings.on(OptionId::kJson);
  if (settings.on(OptionId::kDryRun)) return json ? Launch::Answer::kJson : Launch::Answer::kText;
  if (!json) return Launch::Answer::kRun;
  return usage(settings.origin(OptionId::kJson).name + " is a form of --dry-run: add it");
}

/// How a run is started, not how the command line is answered.
bool is_setting(const OptionSpec& option) {
  return option.value != OptionValue::kAction && option.value != OptionValue::kChoiceAction &&
         option.id != OptionId::kDryRun && option.id != OptionId::kJson;
}

/// "2" or "gpu": one worker for each device of --gpus.
void take_count_of_gpus(const WorkerRequest& workers, Origin& count) {
  if (workers.count.id != OptionId::kGpus) return;
  const std::size_t devices = workers.gpus.value->names.size();
  count.text = devices == 0 ? "gpu" : std::to_string(devices);
  count.source = workers.count.source;
  count.from = workers.count.name;
}

/// What a scheduler supplies is in the request alone.
void take_scheduled(const Request& request, std::vector<Origin>& settings) {
  const RendezvousRequest& asked = request.rendezvous;
  for (const Origin* origin : std::initializer_list<const Origin*>{
           &asked.nodes, &asked.endpoint, &asked.run_id, &asked.node_rank, &asked.master_addr,
           &asked.master_port, &asked.hosts, &asked.standalone, &request.workers.count}) {
    for (Origin& setting : settings) {
      if (setting.id == origin->id) setting = *origin;
    }
  }
  if (!asked.scheduler_hosts) return;
  std::vector<std::string> hosts;
  for (const Endpoint& host : asked.scheduler_hosts->hosts) hosts.push_back(text_of(host));
  for (Origin& setting : settings) {
    if (setting.id != OptionId::kHosts) continue;
    setting.text = joined(hosts);
    setting.source = Source::kScheduler;
    setting.from = asked.scheduler_hosts->source;
  }
}

std::vector<Origin> list_settings(const Settings& settings, const Request& request,
                                  const Environment& environment) {
  std::vector<Origin> all;
  for (const OptionSpec& option : all_options()) {
    if (!is_setting(option)) continue;
    Origin origin = settings.origin(option.id);
    const std::string fallback(option.fallback);
    const std::string inherited = value_or(environment, fallback, "");
    const bool ignored = option.id == OptionId::kHttp && !request.http;  // health_port_note()
    if (!origin.given && !inherited.empty() && !ignored) {
      origin.text = inherited;
      origin.source = Source::kVariable;
      origin.from = fallback;
    }
    all.push_back(std::move(origin));
  }
  take_scheduled(request, all);
  for (Origin& setting : all) {
    if (setting.id == OptionId::kNprocPerNode) take_count_of_gpus(request.workers, setting);
  }
  return all;
}

}  // namespace

Result<SettingsShown> configured_settings(const std::vector<std::string>& words,
                                          const Machine& machine) {
  auto line = scan(words);
  if (!line) return line.error();
  if (line->action)
    return usage("ddprun config shows settings: leave out " + dashed(spec_of(*line->action)));
  auto settings = Settings::merge(*line, machine.environment());
  if (!settings) return settings.error();
  auto asked = ask_for(*settings, line->program, machine);
  if (!asked) return asked.error();
  append(asked->notes, asked->request.notes);
  return SettingsShown{list_settings(*settings, asked->request, machine.environment()),
                       std::move(asked->notes), settings->on(OptionId::kJson)};
}

Result<Intent> configure(const std::vector<std::string>& words, const Machine& machine,
                         Called called) {
  auto line = scan(words);
  if (!line) return line.error();
  if (line->action == OptionId::kHelp) return Intent(ShowHelp{line->action_value == "-h"});
  if (line->action == OptionId::kShowVersion) return Intent(ShowVersion{});
  if (line->action == OptionId::kPrintCompletion) return Intent(ShowCompletion{line->action_value});
  auto settings = Settings::merge(*line, machine.environment());
  if (!settings) return settings.error();
  if (line->program.empty()) {
    return usage("nothing to run: training_script is missing (" + usage_line() + ")");
  }
  const auto answer = answer_of(*settings);
  if (!answer) return answer.error();
  auto asked = ask_for(*settings, line->program, machine);
  if (!asked) return asked.error();
  asked->request.workers.local_rank_argument =
      called == Called::kLaunch && !settings->on(OptionId::kUseEnv);
  const bool compat_given = settings->origin(OptionId::kCompat).source != Source::kDefault;
  if (called != Called::kDdprun && !compat_given) asked->request.workers.compat = true;
  asked->request.logs.config.as_torchrun = asked->request.workers.compat;
  std::vector<Origin> listed;
  if (asked->request.logs.config.verbosity == Verbosity::kVerbose) {
    listed = list_settings(*settings, asked->request, machine.environment());
  }
  auto launch = plan_launch(*asked, machine);
  if (!launch) return launch.error();
  launch->answer = *answer;
  launch->settings = std::move(listed);
  if (called == Called::kLaunch) launch->warnings.emplace_back(kLaunchIsDeprecated);
  return Intent(std::move(*launch));
}

}  // namespace ddprun

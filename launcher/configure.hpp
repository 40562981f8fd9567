// configure: from the words of a command line to what is to be done. All decisions of the launcher,
// none of its actions. Pure except for the facts that it queries from the machine.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "agent/coordinate/preview.hpp"
#include "base/program_name.hpp"
#include "base/result.hpp"
#include "launcher/machine/machine.hpp"
#include "launcher/options/settings.hpp"
#include "launcher/rendezvous/plan.hpp"

namespace ddprun {

// How ddprun was called: under a link called torchrun it is that program, under ddprun-launch it is
// torch.distributed.launch. Pure.
enum class Called {
  kDdprun,
  kTorchrun,  // no commands such as `ddprun ps`: every first word is a script
  kLaunch,    // likewise, and a worker gets its local rank as an argument, too
};

/// By the last part of main()'s first argument.
[[nodiscard]] constexpr Called called_as(std::string_view program) {
  const std::string_view name = program.substr(program.rfind('/') + 1);  // npos + 1 is 0
  if (name == kTorchrunName) return Called::kTorchrun;
  return name == kLaunchName ? Called::kLaunch : Called::kDdprun;
}

[[nodiscard]] constexpr std::string_view name_of(Called called) {
  if (called == Called::kTorchrun) return kTorchrunName;
  return called == Called::kLaunch ? kLaunchName : kDdprunName;
}

struct ShowHelp {
  bool brief = false;  // -h
};
struct ShowVersion {};
struct ShowCompletion {
  std::string shell;
};

struct Launch {
  enum class Answer { kRun, kText, kJson };  // the latter two: --dry-run

  LaunchConfig config;
  std::optional<CoordinatorPlan> coordinator;  // only with config.rendezvous
  coordinator::StatusAccess status = coordinator::StatusAccess::kLocal;  // of a coordinator here
  std::vector<std::string> notes;     // each one line for the user: what was given and is unused
  std::vector<std::string> warnings;  // the same for what looks like a mistake
  PreviewFacts preview{};             // for --dry-run
  Answer answer = Answer::kRun;
  std::vector<Origin> settings{};  // with --verbose: those of `ddprun config`
};
using Intent = std::variant<ShowHelp, ShowVersion, ShowCompletion, Launch>;

/// `words` without the name of ddprun itself. Every refusal is an Error with one sentence; nothing
/// has been started then.
[[nodiscard]] Result<Intent> configure(const std::vector<std::string>& words,
                                       const Machine& machine, Called called = Called::kDdprun);

/// `ddprun config`: every setting of a command line whose program may be missing, with its value
/// and where that comes from.
struct SettingsShown {
  std::vector<Origin> settings;
  std::vector<std::string> notes;  // what is not used
  bool json = false;
};
[[nodiscard]] Result<SettingsShown> configured_settings(const std::vector<std::string>& words,
                                                        const Machine& machine);

}  // namespace ddprun

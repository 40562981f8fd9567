// configure: from the words of a command line to what is to be done. All decisions of the launcher,
// none of its actions. Pure except for the facts that it queries from the machine.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/core/launch_config.hpp"
#include "base/result.hpp"
#include "launcher/called.hpp"
#include "launcher/machine.hpp"
#include "launcher/rendezvous/plan.hpp"

namespace ddprun {

struct ShowHelp {};
struct ShowVersion {};
struct ShowCompletion {
  std::string shell;
};

struct Launch {
  LaunchConfig config;
  std::optional<CoordinatorPlan> coordinator;  // only with config.rendezvous
  std::vector<std::string> notes;     // each one line for the user: what was given and is unused
  std::vector<std::string> warnings;  // the same for what looks like a mistake
};
using Intent = std::variant<ShowHelp, ShowVersion, ShowCompletion, Launch>;

/// `words` without the name of ddprun itself. Every refusal is an Error with one sentence; nothing
/// has been started then.
[[nodiscard]] Result<Intent> configure(const std::vector<std::string>& words,
                                       const Machine& machine, Called called = Called::kDdprun);

}  // namespace ddprun

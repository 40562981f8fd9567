#include "launcher/console_choice.hpp"

namespace ddprun {
namespace {

bool arranges_output(const LogConfig& log) {
  const auto any = [](const StreamChoice& choice) {
    return choice.all != Streams::kNone || !choice.named.empty();
  };
  return any(log.redirects) || any(log.tee) || log.console_ranks.has_value();
}

}  // namespace

void choose_console(LaunchConfig& config, const Environment& environment, bool on_terminal) {
  LogConfig& log = config.log;
  const bool colours = value_or(environment, "NO_COLOR", "").empty() &&
                       value_or(environment, "TERM", "dumb") != "dumb";
  log.coloured = on_terminal && colours;
  if (log.console != Console::kChosen) return;
  const int nodes = config.rendezvous ? config.rendezvous->nodes_max : 1;
  const bool several = nodes > 1 || config.workers.count > 1;
  const bool labels = on_terminal && several && !arranges_output(log);
  log.console = labels ? Console::kRank0 : Console::kQuoted;
}

}  // namespace ddprun

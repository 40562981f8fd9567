#include "launcher/console_choice.hpp"

namespace ddprun {
void choose_console(LaunchConfig& config, const Environment& environment, bool on_terminal) {
  LogConfig& log = config.log;
  const bool colours = value_or(environment, "NO_COLOR", "").empty() &&
                       value_or(environment, "TERM", "dumb") != "dumb";
  log.coloured = on_terminal && colours;
  if (log.console == Console::kChosen) log.console = Console::kQuoted;
}

}  // namespace ddprun

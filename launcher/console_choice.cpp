#include "launcher/console_choice.hpp"

namespace ddprun {

std::string choose_console(LaunchConfig& config, const Environment& environment, bool on_terminal) {
  LogConfig& log = config.log;
  const bool colours = value_or(environment, "NO_COLOR", "").empty() &&
                       value_or(environment, "TERM", "dumb") != "dumb";
  log.coloured = on_terminal && colours;
  if (log.console != Console::kChosen) return {};
  log.console = Console::kQuoted;
  return "by default";
}

}  // namespace ddprun

#include "launcher/console_choice.hpp"

namespace ddprun {
namespace {

bool obeys_sequences(const Environment& environment) {
  return value_or(environment, "TERM", "dumb") != "dumb";
}

}  // namespace

std::string choose_console(LaunchConfig& config, const Environment& environment, bool on_terminal) {
  LogConfig& log = config.log;
  const bool colours =
      value_or(environment, "NO_COLOR", "").empty() && obeys_sequences(environment);
  log.coloured = on_terminal && colours;
  if (log.console != Console::kChosen) return {};
  log.console = Console::kQuoted;
  return "by default";
}

bool may_draw_waits(const LogConfig& log, const Environment& environment) {
  return log.verbosity != Verbosity::kQuiet && log.console != Console::kRaw &&
         obeys_sequences(environment);
}

}  // namespace ddprun

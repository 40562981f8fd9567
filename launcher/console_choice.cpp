#include "launcher/console_choice.hpp"

namespace ddprun {
namespace {

bool arranges_output(const LogConfig& log) {
  return log.redirects.any() || log.tee.any() || log.console_ranks.has_value();
}

bool obeys_sequences(const Environment& environment) {
  return value_or(environment, "TERM", "dumb") != "dumb";
}

}  // namespace

std::string choose_console(LaunchConfig& config, const Environment& environment, bool on_terminal) {
  LogConfig& log = config.log;
  log.redraws = obeys_sequences(environment);
  log.coloured = on_terminal && log.redraws && value_or(environment, "NO_COLOR", "").empty();
  if (log.console != Console::kChosen) return {};
  log.console = Console::kQuoted;
  const int nodes = config.rendezvous ? config.rendezvous->nodes_max : 1;
  if (log.as_torchrun) return "as under torchrun";
  if (!on_terminal) return "stdout and stderr are not one terminal";
  if (nodes == 1 && config.workers.count == 1) return "one rank has the terminal to itself";
  if (arranges_output(log)) return "other options arrange the output";
  log.console = Console::kRank0;
  return "several ranks share a terminal";
}

bool may_draw_waits(const LogConfig& log, const Environment& environment) {
  // A stream that no file takes is inherited then.
  const bool files_of_torchrun =
      log.console == Console::kQuoted && (log.redirects.any() || log.tee.any());
  return log.verbosity != Verbosity::kQuiet && log.console != Console::kRaw && !files_of_torchrun &&
         obeys_sequences(environment);
}

}  // namespace ddprun

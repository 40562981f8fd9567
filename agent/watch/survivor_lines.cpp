#include "agent/watch/survivor_lines.hpp"

#include <utility>

#include "agent/report/text.hpp"
#include "agent/watch/watch_lines.hpp"
#include "base/count_text.hpp"
#include "base/duration_text.hpp"
#include "base/message_line.hpp"

namespace ddprun {

namespace {

std::string line(Round round, const std::string& text) {
  return note_line("RECOVER", "round " + std::to_string(round.value()) + ": " + text);
}

std::string spare_text(int spare, int pid) {
  return "spare " + std::to_string(spare) + " (pid " + std::to_string(pid) + ")";
}

}  // namespace

std::string recovered_line(Round round, RecoveredRanks ranks, Duration took) {
  std::string text;
  const bool several = ranks.from_spares.size() > 1;
  if (!ranks.from_spares.empty()) {
    text = ranks_text(std::move(ranks.from_spares)) + " taken by " +
           (several ? "spares, " : "a spare, ");
  }
  if (!ranks.started.empty()) text += ranks_text(std::move(ranks.started)) + " started again, ";
  return line(round, text + count_text(ranks.kept, "rank") + " kept, " + duration_text(took));
}

std::string not_joined_line(Round round, const WorkerName& worker, Duration limit) {
  return line(round, who(worker) + " did not take part within " + duration_text(limit) +
                         " (--rejoin-timeout); killed and started again");
}

std::string untold_line(Round round, const WorkerName& worker, Duration limit) {
  return line(round,
              who(worker) +
                  " could not be told of it, since its link had ended, and did not end within " +
                  duration_text(limit) + "; killed and started again");
}

std::string lost_survivor_line(Round round, const WorkerName& worker, const ExitStatus& status) {
  return line(round,
              who(worker) + " ended before it took part (" + status.text() + "); started again");
}

std::string unready_spare_line(int spare, int pid, const ExitStatus& status) {
  return warning_line("SPARE", spare_text(spare, pid) + " ended (" + status.text() +
                                   ") before it waited for a place: none is started any more; "
                                   "does the program call survive() and next_round()?");
}

std::string lost_spare_line(int spare, int pid, const ExitStatus& status) {
  return note_line("SPARE",
                   spare_text(spare, pid) + " ended while it waited (" + status.text() + ")");
}

std::string spare_not_started_line(const std::string& why) {
  return warning_line("SPARE", "no spare can be started: " + why);
}

std::string no_spare_line() {
  return note_line("SPARE",
                   "no spare was there: the first is started when all ranks have called survive()");
}

}  // namespace ddprun

#include "agent/watch/watch_lines.hpp"

#include <algorithm>
#include <utility>

#include "agent/report/lines.hpp"
#include "agent/report/quotation.hpp"
#include "base/exit_status.hpp"
#include "base/format.hpp"
#include "base/message_line.hpp"
#include "base/printable.hpp"

namespace ddprun {

namespace {

constexpr std::size_t kRangesShown = 8;
constexpr std::size_t kEndedChildrenShown = 3;
static_assert(kEndedChildrenShown + 2 < kFindingLinesMax);

std::string partial_text(const PartialFacts& facts) {
  std::vector<Rank> still;
  for (const WorkerName& worker : facts.running) still.push_back(worker.rank);
  const bool one = still.size() == 1;
  return ranks_text(facts.finished) + " exited with code 0 " + duration_text(facts.lasts) +
         " ago; " + (one ? who(facts.running.front()) : ranks_text(still)) + " still run" +
         (one ? "s" : "");
}

/// Each reason why stacks are missing, once.
std::vector<std::string> missing_stacks(const StackDump& dump) {
  std::vector<std::string> reasons;
  for (const RankStacks& rank : dump.ranks) {
    for (const ProcessStacks& process : rank.processes) {
      const bool is_new =
          std::find(reasons.begin(), reasons.end(), process.missing) == reasons.end();
      if (!process.missing.empty() && is_new) reasons.push_back(process.missing);
    }
  }
  return reasons;
}

Finding finding_of(const std::string& code, const std::string& text, const StackDump& dump) {
  Finding finding;
  finding.code = code;
  finding.text = text;
  const std::vector<StackGroup> groups = group_stacks(dump);
  finding.ranks = odd_ranks(groups);
  if (finding.ranks.size() > kFindingRanksMax) finding.ranks.resize(kFindingRanksMax);
  finding.places = shortened(groups);
  if (!groups.empty()) finding.evidence.push_back(groups_text(groups));
  std::vector<std::string> ended = ended_children(dump);
  if (ended.size() > kEndedChildrenShown) {
    const std::size_t more = ended.size() - kEndedChildrenShown;
    ended.resize(kEndedChildrenShown);
    ended.push_back(std::to_string(more) + " more ended so");
  }
  for (const std::string& line : ended) finding.evidence.push_back(line);
  for (const std::string& reason : missing_stacks(dump)) {
    if (finding.evidence.size() < kFindingLinesMax) finding.evidence.push_back(reason);
  }
  return finding;
}

std::string recover_line(Round round, const std::string& text) {
  return note_line("RECOVER", "round " + std::to_string(round.value()) + ": " + text);
}

std::string spare_text(int spare, int pid) {
  return "spare " + std::to_string(spare) + " (pid " + std::to_string(pid) + ")";
}

}  // namespace

std::string ranks_text(std::vector<Rank> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  std::size_t shown = 0;
  for (std::size_t from = 0; from < ranks.size(); ++shown) {
    std::size_t to = from;
    while (to + 1 < ranks.size() && ranks[to + 1].value() == ranks[to].value() + 1) ++to;
    if (shown == kRangesShown) return text + ", ...";
    text += (from == 0 ? "" : ", ") + std::to_string(ranks[from].value());
    if (to > from) text += (to == from + 1 ? ", " : "-") + std::to_string(ranks[to].value());
    from = to + 1;
  }
  return text;
}

std::string input_text(const std::vector<Rank>& waiting, const std::vector<Rank>& shown) {
  const bool one = waiting.size() == 1;
  std::string text =
      ranks_text(waiting) + (one ? " waits" : " wait") + " for input from the terminal";
  if (!one) text += "; a line that is typed goes to the one that reads first";
  if (!shown.empty()) text += "; stdout of " + ranks_text(shown) + " is shown meanwhile";
  return text;
}

std::string asked_text(const std::vector<Rank>& ranks) {
  const char* whose = ranks.size() == 1 ? "its Python stacks are in its stderr"
                                        : "their Python stacks are in their stderr";
  return ranks_text(ranks) + " did not end in time: " + whose;
}

std::string first_partial_line(const PartialFacts& facts) {
  return note_line("PARTIAL", partial_text(facts));
}

std::string second_partial_line(const PartialFacts& facts, const std::vector<StackGroup>& groups) {
  std::string text = warning_line("PARTIAL", partial_text(facts));
  if (!groups.empty()) text += labelled("evidence", groups_text(groups));
  text += labelled("likely", "ranks took a different number of steps, or one called exit(0) early");
  const std::string next = facts.left ? "waiting up to " + duration_text(*facts.left) +
                                            " more (--finish-timeout), then the run is stopped"
                                      : "waiting without a limit (--finish-timeout sets one)";
  return text + labelled("next", next);
}

Finding finish_timeout_finding(const PartialFacts& facts, const StackDump& dump) {
  return finding_of("PARTIAL", partial_text(facts) + " (--finish-timeout)", dump);
}

Finding hang_finding(Duration limit, const StackDump& dump,
                     const std::vector<RankException>& raised) {
  constexpr std::size_t kShown = 3;
  Finding finding = finding_of("HANG",
                               "no rank has used CPU time, read or written for " +
                                   duration_text(limit) + " (--hang-timeout)",
                               dump);
  // The first line is about the groups: other nodes add theirs to it.
  const std::size_t begin = finding.places.empty() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(raised.size(), kShown); ++i) {
    const auto at = finding.evidence.begin() + static_cast<std::ptrdiff_t>(begin + i);
    finding.evidence.insert(at, who(raised[i].worker) + " said last: " + raised[i].exception);
  }
  finding.evidence.resize(std::min(finding.evidence.size(), kFindingLinesMax));
  if (!raised.empty()) {
    finding.likely = "an exception that did not end its process, for which the others wait";
  }
  return finding;
}

Finding sleep_finding(const std::vector<Sleeper>& sleepers, const StackDump& dump) {
  constexpr std::size_t kShown = 3;
  std::vector<Rank> ranks;
  std::vector<std::string> evidence;
  for (const Sleeper& sleeper : sleepers) {
    ranks.push_back(sleeper.worker.rank);
    if (evidence.size() == kShown) continue;
    std::string text = who(sleeper.worker) + ": state D";
    if (!sleeper.wait_channel.empty()) text += " in " + quotable(sleeper.wait_channel);
    evidence.push_back(text + " for " + duration_text(sleeper.lasts));
  }
  const bool one = sleepers.size() == 1;
  Finding finding = finding_of(
      "SLEEP",
      (one ? who(sleepers.front().worker) : ranks_text(ranks)) + (one ? " has" : " have") +
          " been in uninterruptible sleep for " + duration_text(sleepers.front().lasts) +
          " (TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT)",
      dump);
  evidence.insert(evidence.end(), finding.evidence.begin(), finding.evidence.end());
  evidence.resize(std::min(evidence.size(), kFindingLinesMax));
  finding.evidence = std::move(evidence);
  finding.ranks.clear();
  for (const Rank rank : ranks) finding.ranks.push_back(rank.value());
  finding.ranks.resize(std::min(finding.ranks.size(), kFindingRanksMax));
  finding.likely = "storage or a driver that does not answer; SIGKILL may not end it";
  finding.no_restart = "what holds it in the kernel would hold it again";
  return finding;
}

Finding section_finding(const WorkerName& worker, const SectionFacts& section,
                        const StackDump& dump) {
  Finding finding =
      finding_of("W-SECTION",
                 who(worker) + " is in its section \"" + printable(section.name) + "\" for " +
                     duration_text(section.lasts) + ", limit " + duration_text(section.limit),
                 dump);
  finding.ranks = {worker.rank.value()};
  return finding;
}

Finding timer_finding(const WorkerName& worker, const WorkerTimer& timer, const StackDump& dump) {
  const std::string process =
      timer.pid == worker.pid ? "" : " of its process " + std::to_string(timer.pid);
  Finding finding = finding_of("W-TIMER",
                               who(worker) + ": the timer \"" + quotable(timer.scope) + "\"" +
                                   process + " expired; ddprun sends " + signal_name(timer.signal),
                               dump);
  finding.ranks = {worker.rank.value()};
  return finding;
}

void add_steps(Finding& finding, const std::vector<WorkerName>& running,
               const std::vector<std::int64_t>& steps) {
  if (steps.empty() || steps.size() != running.size()) return;
  auto whose = std::min_element(steps.begin(), steps.end());
  for (std::size_t i = 0; i < running.size() && finding.ranks.size() == 1; ++i) {
    const bool is_named = running[i].rank.value() == finding.ranks.front();
    if (is_named) whose = steps.begin() + static_cast<std::ptrdiff_t>(i);
  }
  std::vector<std::int64_t> others;
  for (auto step = steps.begin(); step != steps.end(); ++step) {
    if (step != whose && *step >= 0) others.push_back(*step);
  }
  const Rank rank = running[static_cast<std::size_t>(whose - steps.begin())].rank;
  const std::string text =
      steps_text(rank, *whose < 0 ? std::nullopt : std::optional(*whose), others);
  if (text.empty()) return;
  // Behind the places of the ranks, which the findings of several nodes have in one line.
  const std::ptrdiff_t at = finding.evidence.empty() || finding.places.empty() ? 0 : 1;
  finding.evidence.insert(finding.evidence.begin() + at, text);
  finding.evidence.resize(std::min(finding.evidence.size(), kFindingLinesMax));
}

std::string recovered_line(Round round, RecoveredRanks ranks, Duration took) {
  std::string text;
  const bool several = ranks.from_spares.size() > 1;
  if (!ranks.from_spares.empty()) {
    text = ranks_text(std::move(ranks.from_spares)) + " taken by " +
           (several ? "spares, " : "a spare, ");
  }
  if (!ranks.started.empty()) text += ranks_text(std::move(ranks.started)) + " started again, ";
  return recover_line(round,
                      text + count_text(ranks.kept, "rank") + " kept, " + duration_text(took));
}

std::string not_joined_line(Round round, const WorkerName& worker, Duration limit) {
  return recover_line(round, who(worker) + " did not take part within " + duration_text(limit) +
                                 " (--rejoin-timeout); killed and started again");
}

std::string untold_line(Round round, const WorkerName& worker, Duration limit) {
  return recover_line(
      round, who(worker) +
                 " could not be told of it, since its link had ended, and did not end within " +
                 duration_text(limit) + "; killed and started again");
}

std::string lost_survivor_line(Round round, const WorkerName& worker, const ExitStatus& status) {
  return recover_line(
      round, who(worker) + " ended before it took part (" + status.text() + "); started again");
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

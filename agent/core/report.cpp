#include "agent/core/report.hpp"

#include <signal.h>

#include <algorithm>

#include "agent/core/error_file.hpp"
#include "agent/core/text.hpp"
#include "agent/core/verdict.hpp"
#include "base/count_text.hpp"
#include "base/duration_text.hpp"
#include "base/printable.hpp"

namespace ddprun {

namespace {

constexpr const char* kNextLine = "\n            ";

std::string labelled(const std::string& label, const std::string& text) {
  return "\n  " + label + std::string(10 - label.size(), ' ') + printable(text);
}

std::string quoted(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += kNextLine + ("| " + printable(line));
  return text;
}

void add_evidence(FailureFacts& facts, const ExitRecord& record) {
  const ErrorFile file = read_error_file(record.error_json);
  if (file.form == ErrorFile::Form::kGood) {
    const bool stack = !file.error.callstack.empty();
    facts.source = "its error.json";
    facts.evidence = quotable_lines(stack ? file.error.callstack : file.error.message);
    return;
  }
  const bool torn = file.form == ErrorFile::Form::kTorn;
  if (torn) facts.source = "its error.json is truncated";
  facts.evidence = quotable_lines(record.stderr_tail);
  if (facts.evidence.empty()) return;
  facts.source += std::string(torn ? "; " : "") + "last lines of its stderr";
}

std::string what_to_try(const Verdict& verdict, const ExitStatus& status) {
  if (verdict.cause != Cause::kCrash || status.dumped_core()) return {};
  return "PYTHONFAULTHANDLER=1 for the Python stack; ulimit -c unlimited for a core dump";
}

std::string others(const FailureFacts& facts) {
  if (facts.stopped == 0) return {};
  std::string text = ranks_text(facts.stopped) + (facts.stopped == 1 ? " was" : " were") +
                     " running; ddprun stopped " + (facts.stopped == 1 ? "it" : "them") + " in " +
                     duration_text(facts.stop_took) + " (none failed first)";
  if (facts.killed > 0) {
    text += "; " + ranks_text(facts.killed) + " needed SIGKILL";
  }
  return labelled("others", text);
}

}  // namespace

std::string who(const Who& worker) {
  return "rank " + std::to_string(worker.rank.value()) + " (local " +
         std::to_string(worker.local_rank.value()) + ", pid " + std::to_string(worker.pid) +
         ") on " + printable(worker.host);
}

std::string who(const ExitRecord& record, const std::string& host) {
  return who(Who{record.rank, record.local_rank, record.pid, host});
}

std::string start_line(const StartFacts& facts) {
  std::string text = "ddprun " + facts.version + " run " + printable(facts.run.value()) +
                     " round " + std::to_string(facts.round.value()) + ": " +
                     ranks_text(facts.workers);
  if (!facts.store.empty()) text += ", store " + facts.store;
  if (!facts.log_dir.empty()) text += ", logs " + printable(facts.log_dir);
  return text + "; shutdown timeout " + duration_text(facts.shutdown_timeout) + ", max restarts " +
         std::to_string(facts.max_restarts);
}

std::string death_line(const ExitRecord& record, const std::string& host, int others) {
  const Verdict verdict = judge(record);
  std::string text =
      "ddprun: warning [" + verdict.code + "] " + who(record, host) + " " + printable(verdict.text);
  if (others > 0) text += "; stopping " + count_text(others, "other rank");
  return text;
}

std::string restart_line(const std::string& text) {
  return "ddprun: note [RESTART] " + text;
}

std::string stop_line(int signal, int workers, Duration shutdown_timeout) {
  const std::string stopping = "stopping " + ranks_text(workers);
  if (signal == SIGINT) {
    return "ddprun: note [INT] " + stopping + " (Ctrl-C); press Ctrl-C again to kill immediately";
  }
  if (signal == SIGHUP) {
    return "ddprun: error [HUP] the terminal was closed (SIGHUP); " + stopping +
           labelled("try", "nohup or tmux (ddprun keeps nohup's setting)");
  }
  return "ddprun: note [STOP] " + signal_name(signal) + " received, " + stopping +
         ", shutdown timeout " + duration_text(shutdown_timeout);
}

std::string stopped_line(int signal, const StopFacts& stop) {
  std::string text = "ddprun: note [STOP] ";
  const std::string after = " after " + duration_text(stop.took);
  if (stop.gone == 0 && stop.unkillable == 0) text += "no rank was running";
  if (stop.gone > 0) text += ranks_text(stop.gone) + " gone" + after;
  if (stop.killed > 0) text += ", " + std::to_string(stop.killed) + " needed SIGKILL";
  if (stop.unkillable > 0) {
    text += stop.gone > 0 ? ", " + std::to_string(stop.unkillable) + " still alive"
                          : ranks_text(stop.unkillable) + " still alive" + after;
  }
  return text + "; exit " + std::to_string(128 + signal);
}

std::string done_line(int workers, Duration took, RestartCount restarts) {
  return "ddprun: done: " + std::string(workers == 1 ? "" : "all ") + ranks_text(workers) +
         " exited with code 0 after " + duration_text(took) + "; " +
         count_text(restarts.value(), "restart");
}

std::string left_behind_text(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 4;
  std::vector<std::string> different;
  for (const std::string& name : names) {
    const bool known = std::find(different.begin(), different.end(), name) != different.end();
    if (!known) different.push_back(name);
  }
  std::string text = std::to_string(names.size());
  text += names.size() == 1 ? " process (" : " processes (";
  for (std::size_t i = 0; i < different.size() && i < kShown; ++i) {
    text += (i == 0 ? "" : ", ") + quotable(different[i]);
  }
  return text + (different.size() > kShown ? ", ...)" : ")");
}

std::string left_behind_line(const LeftBehindFacts& facts) {
  const std::string text =
      "ddprun: note [LEFT] " + facts.who + " left " + left_behind_text(facts.names) + " behind; ";
  if (facts.signal == 0) {
    return text + "waiting up to " + duration_text(facts.timeout) + " (--straggler-timeout)";
  }
  return text + "sending " + signal_name(facts.signal) + " " + duration_text(facts.since_exit) +
         " after its exit";
}

std::string unkillable_line(const ExitRecord& record, const std::string& host) {
  const std::string code = "ddprun: error [W-UNKILLABLE] ";
  if (!record.left_behind.empty()) {
    return code + record.left_behind + " that " + who(record, host) +
           " left behind: still alive after SIGKILL; giving up on them";
  }
  return code + who(record, host) + " is still alive after SIGKILL; giving up on it";
}

FailureFacts facts_of(const ExitRecord& record, const std::string& host) {
  const Verdict verdict = judge(record);
  FailureFacts facts;
  facts.code = verdict.code;
  facts.who = who(record, host);
  facts.verdict = verdict.text;
  facts.when = time_text(record.when) + ", " + duration_text(record.since_start) + " after start";
  add_evidence(facts, record);
  facts.advice = what_to_try(verdict, record.status);
  facts.log = record.log;
  return facts;
}

std::string failure_headline(const FailureFacts& facts) {
  const int round = facts.round.value();
  const std::string scope = round == 1 ? "the run" : "round " + std::to_string(round);
  return "ddprun: error [" + facts.code + "] " + facts.who + " " + printable(facts.verdict) +
         ", first failure of " + scope;
}

std::string failure_report(const FailureFacts& facts) {
  std::string text = failure_headline(facts);
  text += labelled("when", facts.when + ", round " + std::to_string(facts.round.value()));
  if (!facts.source.empty()) {
    text += labelled("evidence", facts.source + (facts.evidence.empty() ? "" : ":"));
  }
  text += quoted(facts.evidence);
  text += others(facts);
  if (!facts.advice.empty()) text += labelled("try", facts.advice);
  if (!facts.next.empty()) text += labelled("next", facts.next);
  if (!facts.log.empty()) text += labelled("log", facts.log);
  return text;
}

std::string spawn_failure_line(Rank rank, const std::string& host, const std::string& sentence) {
  return "ddprun: error [EXEC] rank " + std::to_string(rank.value()) + " on " + host +
         " cannot be started: " + printable(sentence);
}

}  // namespace ddprun

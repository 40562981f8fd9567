#include "agent/report/report.hpp"

#include <algorithm>
#include <vector>

#include "agent/report/error_file.hpp"
#include "agent/report/lines.hpp"
#include "agent/report/quotation.hpp"
#include "agent/report/verdict.hpp"
#include "base/ending.hpp"
#include "base/format.hpp"
#include "base/message_line.hpp"
#include "base/printable.hpp"

namespace ddprun {

namespace {

const std::string kStderrUnseen = "its stderr does not pass through ddprun (--console raw)";
const std::string kLastOfBoth = "last lines of its output";
const std::string kContinued = "\n            ";  // below the text of a label
// A report fills at most one screen; of that, this much belongs to what is quoted in any case.
constexpr std::size_t kScreenLines = 24;
constexpr std::size_t kQuotedMin = 8;

std::string quoted(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += kContinued + "| " + printable(line);
  return text;
}

std::string source_text(const WorkerExit& exit) {
  std::string of_stream;
  if (exit.evidence.lines_of_stdout) {
    of_stream = exit.evidence.stderr_unseen ? kStderrUnseen : "its stderr is empty";
    of_stream += "; last lines of its stdout";
  } else if (!exit.lines.empty()) {
    of_stream = exit.evidence.lines_of_both ? kLastOfBoth : "last lines of its stderr";
  }
  switch (exit.source) {
    case EvidenceSource::kStderr:
      return of_stream;
    case EvidenceSource::kErrorFile:
      return "its error.json";
    case EvidenceSource::kTornErrorFile:
      return "its error.json is truncated" + (of_stream.empty() ? "" : "; " + of_stream);
  }
  return {};
}

/// Lines that the headline has already.
bool is_said(const std::vector<std::string>& lines, const Verdict& verdict) {
  return lines.size() == 1 && verdict.text.find(lines.front()) != std::string::npos;
}

struct Account {
  std::vector<std::string> facts;  // measured
  std::vector<std::string> lines;  // quoted
  std::string likely;
  std::string advice;
};

/// A crash of Python that shuts down after an exception is no cause (W-EXIT); of another signal an
/// exception that is above was survived.
bool may_end_by_exception(const ExitStatus& status, const Verdict& verdict) {
  return status.by_signal() ? verdict.code == "W-EXIT" : may_be_uncaught(status);
}

Account account_of(const WorkerExit& exit, const Verdict& verdict, bool is_above) {
  Account account{verdict.evidence, exit.lines, verdict.likely, verdict.advice};
  if (!exit.evidence.steps.empty()) account.facts.push_back(exit.evidence.steps);
  if (is_said(exit.lines, verdict)) {
    account.lines.clear();
  } else if (const auto exception = is_above && may_end_by_exception(exit.status, verdict)
                                        ? exception_of(exit.lines)
                                        : std::vector<std::string>();
             !exception.empty()) {
    const char* more = exception.size() > 1 ? " and what followed it:" : ":";
    account.facts.push_back(std::string("its traceback is above, with the exception") + more);
    account.lines = exception;
  } else if (const std::string source = source_text(exit); !source.empty()) {
    account.facts.push_back(source + (exit.lines.empty() ? "" : ":"));
  }
  if (exit.evidence.silent && exit.evidence.stderr_unseen) {
    account.facts.push_back(kStderrUnseen);  // the console has it
  } else if (exit.evidence.silent) {
    account.facts.emplace_back("its stderr is empty; its stdout does not pass through ddprun");
    if (account.advice.empty()) account.advice = "--tee=3 keeps the last lines of its stdout, too";
  }
  return account;
}

// The facts about all ranks, and where they do not decide, what the first one said.
Account account_of(const Finding& finding, const WorkerExit& first) {
  const bool undecided = finding.ranks.empty();
  return {finding.evidence, undecided ? first.lines : std::vector<std::string>(), finding.likely,
          ""};
}

std::string evidence(const Account& account, std::size_t lines_max) {
  std::string text;
  for (const std::string& fact : account.facts) {
    text += text.empty() ? labelled("evidence", fact) : kContinued + printable(fact);
  }
  const std::size_t room = lines_max - std::min(lines_max - kQuotedMin, account.facts.size());
  return text + quoted(fitted(account.lines, room));
}

std::string others(const RunFailure& failure) {
  std::string witnesses = failure.finding ? failure.finding->others : "";
  if (failure.alike > 0) {
    const std::string more =
        failure.alike == 1 ? "1 other" : std::to_string(failure.alike) + " others";
    witnesses += (witnesses.empty() ? "" : "; ") + more + " failed alike";
  }
  if (!failure.also.empty()) witnesses += (witnesses.empty() ? "" : "; ") + failure.also;
  if (failure.stopped == 0) return witnesses;
  const bool one = failure.stopped == 1;
  std::string text = count_text(failure.stopped, "rank") + (one ? " was" : " were");
  const bool spared = failure.spared.count() > 0;
  text += spared ? " still running " + duration_text(failure.spared) + " later" : " running";
  text += std::string("; ddprun stopped ") + (one ? "it " : "them ") +
          span_text("in", failure.stop_took);
  if (failure.killed > 0) text += "; " + count_text(failure.killed, "rank") + " needed SIGKILL";
  return witnesses.empty() ? text : witnesses + "; " + text;
}

// What shows most: the log of the culprit. A round that was given up has the file of its stacks.
std::string log_text(const RunFailure& failure, const std::string& hostname,
                     const std::vector<RankLog>& logs) {
  const WorkerExit& exit = failure.first;
  std::string whose;
  if (failure.finding && !failure.finding->ranks.empty() && !exit.given_up) {
    const Rank culprit(failure.finding->ranks.front());
    for (const RankLog& log : logs) {
      if (log.rank == culprit) return log.path;
    }
    const Rank witness = exit.worker.rank;
    if (witness != culprit) whose = "rank " + std::to_string(witness.value()) + "'s: ";
  }
  if (exit.log.empty()) return {};
  return whose + (exit.worker.host == hostname ? "" : exit.worker.host + ":") + exit.log;
}

/// Whether its error file can be about the end: not if the worker raised another exception after
/// it, or caught it, as another exit code than Python's shows, and said something else.
bool agrees(const WorkerError& error, const WorkerExit& exit) {
  const std::string first = error.message.substr(0, error.message.find('\n'));
  const auto colon = first.find(": ");
  const std::string said = quotable(colon == std::string::npos ? first : first.substr(colon + 2));
  const bool is_quoted = std::any_of(
      exit.lines.begin(), exit.lines.end(),
      [&said](const std::string& line) { return line.find(said) != std::string::npos; });
  if (is_quoted || exit.lines.empty()) return true;
  const bool raised = is_traceback_heading(exit.lines.front());
  return may_be_uncaught(exit.status) && !raised && !reports_failure(exit.lines.back());
}

/// Whether most of the quoted lines are in the log of stdout, where stderr has another one. What a
/// witness said of others is in that of stderr.
bool is_of_stdout(const WorkerExit& exit, const RawEvidence& raw) {
  if (raw.stdout_log.empty() || exit.complaint) return false;
  const auto own = std::count_if(exit.lines.begin(), exit.lines.end(), [&](const auto& line) {
    return raw.stdout_tail.find(line) != std::string::npos;
  });
  return 2 * static_cast<std::size_t>(own) > exit.lines.size();
}

}  // namespace

void add_evidence(WorkerExit& exit, const RawEvidence& raw) {
  exit.evidence = raw.facts;
  const ErrorFile file = read_error_file(raw.error_json);
  exit.lines = quotable_lines(raw.stderr_tail, exit.status);
  const bool good = file.form == ErrorFile::Form::kGood && agrees(file.error, exit);
  if (good) {
    const bool stack = !file.error.callstack.empty();
    exit.source = EvidenceSource::kErrorFile;
    exit.lines = quotable_lines(stack ? file.error.callstack : file.error.message);
  } else {
    const bool torn = file.form == ErrorFile::Form::kTorn;
    exit.source = torn ? EvidenceSource::kTornErrorFile : EvidenceSource::kStderr;
  }
  const bool empty = !good && exit.lines.empty();
  if (empty) exit.lines = quotable_lines(raw.stdout_tail, exit.status);
  exit.evidence.stderr_unseen = raw.stderr_unseen;
  exit.evidence.lines_of_both = raw.stderr_has_both;
  exit.evidence.lines_of_stdout = empty && !exit.lines.empty();
  if (raw.stderr_lost) exit.log.clear();
  if (raw.stderr_has_both && !good && is_of_stdout(exit, raw)) exit.log = raw.stdout_log;
  // A log that is empty shows nothing.
  if (exit.evidence.lines_of_stdout || (raw.files_read && raw.stderr_tail.empty())) {
    exit.log = raw.stdout_tail.empty() ? "" : raw.stdout_log;
  }
  const bool in_no_log = raw.files_read && (exit.log.empty() || raw.stderr_tail.empty());
  if (good && in_no_log) exit.log = raw.error_file;
  const bool unseen = raw.stdout_unseen || raw.stderr_unseen;
  exit.evidence.silent = empty && exit.lines.empty() && unseen;
  exit.evidence.telling_line = find_telling_line(raw.stderr_tail, exit.lines);
}

std::string failure_headline(const RunFailure& failure) {
  if (failure.finding) return error_line(failure.finding->code, failure.finding->text);
  const int round = failure.round.value();
  const std::string scope = round == 1 ? "the run" : "round " + std::to_string(round);
  const Verdict verdict = judge(failure.first);
  std::string text = sentence_of(failure.first, verdict);
  if (!failure.no_retry.empty()) {
    return error_line("RESTARTS", "giving up: " + text + ", " + failure.no_retry);
  }
  if (verdict.subject == Verdict::Subject::kRank) text += ", first failure of " + scope;
  return error_line(verdict.code, text);
}

std::string failure_report(const RunFailure& failure, const std::string& hostname,
                           const std::vector<RankLog>& logs, Shown shown,
                           const std::string& likely) {
  const WorkerExit& exit = failure.first;
  const bool is_above = shown == Shown::kYes && failure.alike == 0;
  Account account = failure.finding ? account_of(*failure.finding, exit)
                                    : account_of(exit, judge(exit), is_above);
  if (!failure.repeated.empty()) account.facts.insert(account.facts.begin(), failure.repeated);
  std::vector<std::string> after;
  const auto add = [&after](const char* label, const std::string& line) {
    if (!line.empty()) after.push_back(labelled(label, line));
  };
  add("likely", likely.empty() ? account.likely : likely);
  add("others", others(failure));
  add("try", account.advice);
  if (!failure.no_restart.empty()) add("next", "not restarted: " + failure.no_restart);
  add("log", log_text(failure, hostname, logs));
  add("exit", "code " + std::to_string(exit_code_of_run(exit.status)));
  std::string text = failure_headline(failure);
  const bool is_here = exit.worker.host == hostname;
  text += labelled("when", time_text(exit.when) + ", " + duration_text(exit.since_start) +
                               (is_here ? " after start" : " after the start of its node") +
                               ", round " + std::to_string(failure.round.value()));
  text += evidence(account, kScreenLines - 2 - after.size());
  for (const std::string& line : after) text += line;
  return text;
}

}  // namespace ddprun

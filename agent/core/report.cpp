#include "agent/core/report.hpp"

#include <vector>

#include "agent/core/error_file.hpp"
#include "agent/core/text.hpp"
#include "agent/core/verdict.hpp"
#include "base/count_text.hpp"
#include "base/duration_text.hpp"
#include "base/message_line.hpp"
#include "base/printable.hpp"

namespace ddprun {

namespace {

std::string quoted(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "\n            | " + printable(line);
  return text;
}

std::string source_text(const WorkerExit& exit) {
  std::string of_stderr = exit.lines.empty() ? "" : "last lines of its stderr";
  switch (exit.source) {
    case EvidenceSource::kStderr:
      return of_stderr;
    case EvidenceSource::kErrorFile:
      return "its error.json";
    case EvidenceSource::kTornErrorFile:
      return "its error.json is truncated" + (of_stderr.empty() ? "" : "; " + of_stderr);
  }
  return {};
}

std::string evidence(const WorkerExit& exit) {
  const std::string source = source_text(exit);
  if (source.empty()) return {};
  return labelled("evidence", source + (exit.lines.empty() ? "" : ":")) + quoted(exit.lines);
}

// The facts about all ranks, and where they do not decide, what the first one said.
std::string evidence(const Finding& finding, const WorkerExit& first) {
  std::string text;
  for (const std::string& line : finding.evidence) {
    text += text.empty() ? labelled("evidence", line) : "\n            " + printable(line);
  }
  if (finding.ranks.empty()) text += quoted(first.lines);
  return finding.likely.empty() ? text : text + labelled("likely", finding.likely);
}

std::string others(const RunFailure& failure) {
  const std::string witnesses = failure.finding ? failure.finding->others : "";
  if (failure.stopped == 0) return witnesses.empty() ? "" : labelled("others", witnesses);
  const bool one = failure.stopped == 1;
  std::string text = count_text(failure.stopped, "rank") + (one ? " was" : " were") +
                     " running; ddprun stopped " + (one ? "it " : "them ") +
                     span_text("in", failure.stop_took);
  if (failure.killed > 0) text += "; " + count_text(failure.killed, "rank") + " needed SIGKILL";
  return labelled("others", witnesses.empty() ? text : witnesses + "; " + text);
}

}  // namespace

void add_evidence(WorkerExit& exit, const RawEvidence& raw) {
  const ErrorFile file = read_error_file(raw.error_json);
  if (file.form == ErrorFile::Form::kGood) {
    const bool stack = !file.error.callstack.empty();
    exit.source = EvidenceSource::kErrorFile;
    exit.lines = quotable_lines(stack ? file.error.callstack : file.error.message);
    return;
  }
  const bool torn = file.form == ErrorFile::Form::kTorn;
  exit.source = torn ? EvidenceSource::kTornErrorFile : EvidenceSource::kStderr;
  exit.lines = quotable_lines(raw.stderr_tail);
}

std::string failure_headline(const RunFailure& failure) {
  if (failure.finding) return error_line(failure.finding->code, failure.finding->text);
  const int round = failure.round.value();
  const std::string scope = round == 1 ? "the run" : "round " + std::to_string(round);
  const Verdict verdict = judge(failure.first);
  return error_line(verdict.code,
                    who(failure.first.worker) + " " + verdict.text + ", first failure of " + scope);
}

std::string failure_report(const RunFailure& failure, const std::string& hostname) {
  const WorkerExit& exit = failure.first;
  std::string text = failure_headline(failure);
  text += labelled("when", time_text(exit.when) + ", " + duration_text(exit.since_start) +
                               " after start, round " + std::to_string(failure.round.value()));
  text += failure.finding ? evidence(*failure.finding, exit) : evidence(exit);
  text += others(failure);
  if (const Verdict verdict = judge(exit); !failure.finding && !verdict.advice.empty()) {
    text += labelled("try", verdict.advice);
  }
  if (!failure.no_restart.empty()) text += labelled("next", "not restarted: " + failure.no_restart);
  if (exit.log.empty()) return text;
  const bool elsewhere = exit.worker.host != hostname;
  return text + labelled("log", (elsewhere ? exit.worker.host + ":" : "") + exit.log);
}

}  // namespace ddprun

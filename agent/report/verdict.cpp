#include "agent/report/verdict.hpp"

#include <signal.h>

#include <array>

#include "agent/report/lines.hpp"
#include "agent/report/verdict/families.hpp"
#include "base/printable.hpp"

namespace ddprun {

namespace {

using Family = std::optional<Verdict> (*)(const WorkerExit&);
// The first that answers has decided.
constexpr std::array<Family, 7> kFamilies = {
    judge_signal_passed_on, judge_limit_signal, judge_kill, judge_nested, judge_start,
    judge_output,           judge_crash};

/// What a shell makes of a child that a signal ended; 0: the code does not look like that.
int signal_in_shell_code(const ExitStatus& status) {
  const int signal = status.by_signal() ? 0 : status.code() - 128;
  constexpr std::array<int, 8> kDeadly = {SIGILL,  SIGABRT, SIGBUS,  SIGFPE,
                                          SIGKILL, SIGSEGV, SIGPIPE, SIGTERM};
  for (const int deadly : kDeadly) {
    if (signal == deadly) return signal;
  }
  return 0;
}

/// By SIGPIPE, below a shell too, or by Python's exception in its place.
bool died_of_a_broken_pipe(const WorkerExit& exit) {
  if (exit.status.by_signal()) return exit.status.signal() == SIGPIPE;
  return signal_in_shell_code(exit.status) == SIGPIPE || tells(exit, "BrokenPipeError");
}

Verdict closed_stdout(const WorkerExit& exit) {
  Verdict verdict{exit.status.by_signal() ? "W-SIGNAL" : "W-EXIT",
                  ended_text(exit.status) + ": its stdout was closed"};
  verdict.evidence = {"its stdout is that of ddprun, and no process reads it (as in | head)"};
  verdict.advice = "a reader that reads to the end, or --redirects=1 with --log-dir=DIR";
  return verdict;
}

Verdict judge_exit(const WorkerExit& exit) {
  if (exit.evidence.stdout_closed && died_of_a_broken_pipe(exit)) return closed_stdout(exit);
  Verdict verdict{"W-EXIT", ended_text(exit.status)};
  if (exit.status.by_signal() && exit.status.signal() == SIGPIPE) {
    verdict.code = "W-SIGNAL";
    verdict.likely = "it wrote to a pipe or a connection that the other end had closed";
  } else if (exit.status.by_signal()) {
    verdict.code = "W-SIGNAL";
    verdict.text += ", not sent by ddprun; sender unknown";
  }
  if (const int signal = signal_in_shell_code(exit.status); signal != 0) {
    const std::string name = signal_name(signal);
    verdict.likely = "128 + " + name +
                     ": a shell or wrapper, whose program died of it, or a program" +
                     (signal == SIGKILL ? " that chose this code" : " that handled it");
  }
  if (killed_for_memory(exit.evidence)) {
    verdict.evidence = memory_facts(exit);
    verdict.likely = "it failed because the kernel killed a process for memory";
  }
  if (verdict.likely.empty()) verdict.likely = guess_from_output(exit);
  return verdict;
}

}  // namespace

Verdict judge(const WorkerExit& exit) {
  if (const auto& why = exit.given_up) {
    return {why->code, why->text, why->evidence, why->likely, "", Verdict::Subject::kNode};
  }
  for (const Family family : kFamilies) {
    if (auto verdict = family(exit)) return *verdict;
  }
  return judge_exit(exit);
}

Verdict judge_at_once(const WorkerExit& exit) {
  if (!exit.complaint) return judge(exit);
  const ComplaintKind kind = exit.complaint->kind;
  return {code_of(kind), ended_text(exit.status) + after_text(kind)};
}

std::string sentence_of(const WorkerExit& exit, const Verdict& verdict) {
  if (verdict.subject == Verdict::Subject::kNode) return verdict.text;
  return who(exit.worker) + " " + verdict.text;
}

}  // namespace ddprun

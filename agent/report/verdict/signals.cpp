// Deaths by a signal that ddprun did not send to end the worker, except for SIGKILL (memory.cpp).
#include <signal.h>

#include <algorithm>
#include <array>

#include "agent/report/verdict/families.hpp"
#include "base/bytes_text.hpp"
#include "base/ending.hpp"

namespace ddprun {

namespace {

constexpr const char* kCoreAdvice = "ulimit -c unlimited before ddprun for a core dump; or run it ";
constexpr const char* kDebugger = "in a debugger: --no-python gdb -batch -ex run -ex bt --args ";
// Where pyenv or conda put a script on PATH, python3 itself is none that gdb can run.
constexpr const char* kPythonScript = "$(python3 -c 'import sys; print(sys.executable)') SCRIPT";
// Below this /dev/shm is what a container gets by default, not what training needs.
constexpr std::int64_t kSmallSharedMemory = std::int64_t{1024} * 1024 * 1024;

bool stands_for_a_crash(int signal) {
  constexpr std::array<int, 7> kCrashes = {SIGSEGV, SIGBUS, SIGFPE, SIGILL,
                                           SIGABRT, SIGSYS, SIGTRAP};
  for (const int crash : kCrashes) {
    if (signal == crash) return true;
  }
  return false;
}

bool is_mostly_full(const DiskEvidence& disk) {
  return disk.free_bytes < disk.bytes / 10;
}

/// Where the core is, or why there is none.
std::string core_text(const WorkerExit& exit) {
  const Evidence& evidence = exit.evidence;
  const std::string& pattern = evidence.core_pattern;
  if (exit.status.dumped_core()) {
    if (pattern.empty()) return {};
    if (pattern.front() == '|') return "its core went to " + pattern.substr(1);
    const bool absolute = pattern.front() == '/';
    return "its core is " + std::string(absolute ? "" : "in its working directory, ") +
           (absolute ? pattern : "named " + pattern) + " (core_pattern)";
  }
  if (!evidence.limits.known) return {};
  if (evidence.limits.core_bytes == 0) return "core dumps are off (limit 0)";
  return "no core was dumped (core_pattern " + pattern + ")";
}

bool is_lowered(const LimitEvidence& limits, char letter) {
  return limits.lowered.find(letter) != std::string::npos;
}

/// gdb runs no script: its interpreter, which runs with a fault handler, has to be named.
std::string debugger_advice(const WorkerExit& exit) {
  const bool is_python = quotes(exit, kFaultReport);
  if (is_python) return std::string(kDebugger) + kPythonScript;
  return std::string(kDebugger) + "PROGRAM (Python: " + kPythonScript + ")";
}

std::string crash_advice(const WorkerExit& exit) {
  const LimitEvidence& limits = exit.evidence.limits;
  const bool may_raise = !limits.known || (limits.core_bytes && !is_lowered(limits, 'c'));
  if (!exit.status.dumped_core()) {
    return (may_raise ? kCoreAdvice : "run it ") + debugger_advice(exit);
  }
  const bool by_systemd = exit.evidence.core_pattern.find("systemd-coredump") != std::string::npos;
  return by_systemd ? "coredumpctl gdb " + std::to_string(exit.worker.pid) : "";
}

/// What the allocator of libc says before it aborts.
bool is_of_allocator(std::string_view line) {
  constexpr std::array<std::string_view, 6> kWords = {
      "double free or corruption", "free(): ", "malloc", "munmap_chunk(): ", "corrupted ", "*** "};
  return std::any_of(kWords.begin(), kWords.end(),
                     [line](std::string_view word) { return line.starts_with(word); });
}

/// The exception ended the program; the crash of what shut down after it is no cause. While Python
/// runs, its fault handler speaks of a crash.
bool ended_by_exception(const WorkerExit& exit) {
  if (exit.lines.empty() || !is_traceback_heading(exit.lines.front())) return false;
  const std::string_view last = exit.lines.back();
  if (last.starts_with("terminate called") || last.starts_with(kFaultReport)) return true;
  if (quotes(exit, kFaultReport)) return false;
  const LineViews lines = own_account(views_of(exit.lines));
  const auto traceback = last_traceback(lines);
  if (!traceback || traceback->begin != 0 || traceback->is_aside()) return false;
  const Sequel sequel = sequel_of(lines, 0, traceback->end, {});
  return std::all_of(sequel.lines.begin(), sequel.lines.end(),
                     [&lines](std::size_t at) { return is_of_allocator(lines[at]); });
}

Verdict bus_error(const WorkerExit& exit) {
  Verdict verdict{"W-SIGBUS", ended_text(exit.status), shared_memory_facts(exit.evidence)};
  const DiskEvidence* shm = shared_memory(exit.evidence);
  if (shm != nullptr && (is_mostly_full(*shm) || shm->bytes < kSmallSharedMemory)) {
    verdict.likely = kSharedByLoaders;
    verdict.advice = kMoreSharedMemory;
    return verdict;
  }
  const std::vector<std::string> disks = full_disks(exit.evidence);
  verdict.evidence.insert(verdict.evidence.end(), disks.begin(), disks.end());
  if (!disks.empty()) {
    verdict.likely = "a file that it had mapped could not grow, or was truncated";
    return verdict;
  }
  verdict.likely = "a mapped file became shorter, or its storage failed to read a page";
  verdict.advice = crash_advice(exit);
  return verdict;
}

}  // namespace

std::string ended_text(const ExitStatus& status) {
  return (status.by_signal() ? "died of " : "ended with ") + status.text();
}

std::string limit_advice(const LimitEvidence& limits, char letter,
                         const std::string& before_ddprun) {
  if (!is_lowered(limits, letter)) return before_ddprun;
  return std::string("the program, or what starts it, has set this limit (ulimit -") + letter +
         ", setrlimit): that of ddprun is higher";
}

const DiskEvidence* shared_memory(const Evidence& evidence) {
  for (const DiskEvidence& disk : evidence.disks) {
    if (disk.path == "/dev/shm") return &disk;
  }
  return nullptr;
}

std::vector<std::string> shared_memory_facts(const Evidence& evidence) {
  const DiskEvidence* shm = shared_memory(evidence);
  if (shm == nullptr || shm->bytes <= 0) return {};
  const std::int64_t used = (shm->bytes - shm->free_bytes) * 100 / shm->bytes;
  return {"/dev/shm is " + bytes_text(shm->bytes) + " and was " + std::to_string(used) +
          " % full when the rank ended"};
}

std::optional<Verdict> judge_signal_passed_on(const WorkerExit& exit) {
  const std::string by_ddprun = ", which ddprun had been sent and passed on";
  const ExitStatus& status = exit.status;
  if (status.by_signal()) {
    if (status.signal() != exit.passed_signal) return std::nullopt;
    return Verdict{"W-SIGNAL", ended_text(status) + by_ddprun};
  }
  const bool as_shell = exit.passed_signal != 0 && status.code() == 128 + exit.passed_signal;
  const bool in_python = !exit.lines.empty() && exit.lines.back() == "KeyboardInterrupt";
  if (as_shell || (in_python && exit.passed_signal == SIGINT)) {
    return Verdict{"W-SIGNAL",
                   ended_text(status) + " on " + signal_name(exit.passed_signal) + by_ddprun};
  }
  return std::nullopt;
}

std::optional<Verdict> judge_limit_signal(const WorkerExit& exit) {
  const LimitEvidence& limits = exit.evidence.limits;
  if (!exit.status.by_signal()) return std::nullopt;
  const int signal = exit.status.signal();
  Amount cpu = limits.cpu_seconds;
  // The kernel raises the soft limit by a second with each SIGXCPU.
  if (signal == SIGXCPU && cpu && limits.cpu_used) cpu = std::min(*cpu, *limits.cpu_used);
  // With `ulimit -t` soft and hard limit are one, and the kernel sends SIGKILL at once.
  const bool killed_at_limit =
      signal == SIGKILL && cpu && limits.cpu_used && *limits.cpu_used + 1 >= *cpu;
  if (signal == SIGXCPU || killed_at_limit) {
    Verdict verdict{"W-LIMIT", ended_text(exit.status) + ": it used up its CPU time"};
    if (cpu) verdict.evidence = {"its limit on CPU time is " + std::to_string(*cpu) + " s"};
    if (cpu && limits.cpu_used) {
      verdict.evidence.back() += ", it used " + std::to_string(*limits.cpu_used) + " s";
    }
    verdict.advice = limit_advice(
        limits, 't', "ulimit -t unlimited before ddprun, or a longer limit of the scheduler");
    return verdict;
  }
  if (signal == SIGXFSZ) {
    Verdict verdict{"W-LIMIT", ended_text(exit.status) + ": a file reached its limit on file size"};
    if (limits.file_bytes) {
      verdict.evidence = {"its limit on file size is " + bytes_text(*limits.file_bytes)};
    }
    verdict.advice = limit_advice(limits, 'f', "ulimit -f unlimited before ddprun");
    return verdict;
  }
  return std::nullopt;
}

std::optional<Verdict> judge_crash(const WorkerExit& exit) {
  if (!exit.status.by_signal() || !stands_for_a_crash(exit.status.signal())) return std::nullopt;
  if (ended_by_exception(exit)) {
    return Verdict{"W-EXIT",
                   ended_text(exit.status) + " while Python shut down after an exception"};
  }
  if (exit.status.signal() == SIGBUS) return bus_error(exit);
  Verdict verdict{"W-CRASH", ended_text(exit.status)};
  std::string facts;
  if (quotes(exit, "Fatal Python error")) facts = "Python stack from its fault handler is below";
  if (const std::string core = core_text(exit); !core.empty()) {
    facts += (facts.empty() ? "" : "; ") + core;
  }
  if (!facts.empty()) verdict.evidence.push_back(facts);
  if (exit.status.signal() == SIGILL) {
    verdict.likely = "the program was built for another processor than that of " + exit.worker.host;
  }
  verdict.advice = crash_advice(exit);
  return verdict;
}

}  // namespace ddprun

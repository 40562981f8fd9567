// What the exit status tells, with the kernel's counters and the last lines: deaths by a signal
// that ddprun did not send to end the worker, kills for memory, commands that cannot be run,
// launchers inside a worker.

#include <signal.h>

#include <algorithm>
#include <array>
#include <string>

#include "agent/report/lines.hpp"
#include "agent/report/quotation.hpp"
#include "agent/report/verdict/families.hpp"
#include "base/ending.hpp"
#include "base/format.hpp"
#include "base/message_line.hpp"

namespace ddprun {

namespace {

const DiskEvidence* shared_memory(const Evidence& evidence) {
  for (const DiskEvidence& disk : evidence.disks) {
    if (disk.path == "/dev/shm") return &disk;
  }
  return nullptr;
}

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

constexpr const char* kMoreMemory =
    "fewer loader workers; ask for more memory (Slurm --mem, pod limits.memory); this is RAM, not "
    "GPU memory";
constexpr const char* kAskTheHost =
    "journalctl -k, sacct or kubectl describe pod: what else ends processes on that host";

bool moved(const Amount& before, const Amount& after) {
  return before && after && *after > *before;
}

/// Nothing was killed for memory in the worker's cgroup or below it.
bool ruled_out(const MemoryEvidence& memory) {
  if (memory.logged == 0) return true;
  const bool unmoved =
      memory.kills_before && memory.kills_after && *memory.kills_after == *memory.kills_before;
  return unmoved && (memory.kills_cover_subtree || !memory.host_kills_after ||
                     memory.host_kills_after == memory.host_kills_before);
}

bool reaches(const Amount& part, const Amount& whole, int percent) {
  return part && whole && *whole > 0 && *part >= *whole / 100 * percent;
}

bool was_nearly_gone(const MemoryEvidence& memory) {
  constexpr int kNearlyAll = 95;
  const bool host_is_full = memory.host_available && memory.host_total &&
                            *memory.host_available < *memory.host_total / 100 * 3;
  return reaches(memory.peak, memory.limit, kNearlyAll) ||
         reaches(memory.worker_peak, memory.limit, kNearlyAll) ||
         reaches(memory.worker_peak, memory.host_total, 80) || host_is_full;
}

std::string counter_text(const Amount& before, const Amount& after) {
  return " went " + std::to_string(*before) + " -> " + std::to_string(*after);
}

void add(std::string& text, const std::string& part) {
  text += (text.empty() ? "" : "; ") + part;
}

std::string counters_text(const MemoryEvidence& memory) {
  const bool known = memory.kills_before && memory.kills_after;
  if (moved(memory.kills_before, memory.kills_after)) {
    return "oom_kill counter of its cgroup" +
           counter_text(memory.kills_before, memory.kills_after) +
           (memory.logged == 0 ? ", and the host's log names another process" : "");
  }
  if (memory.logged != 0 && moved(memory.host_kills_before, memory.host_kills_after)) {
    return "oom_kill counter of the host" +
           counter_text(memory.host_kills_before, memory.host_kills_after) + " in this round" +
           (memory.logged == 1 ? ", and its log names this process" : "");
  }
  return known ? "oom_kill counter of its cgroup did not move" : "";
}

std::string likely_from(const MemoryEvidence& memory) {
  if (memory.left_processes.value_or(0) == 0 || !memory.left_resident) return {};
  return "data loading: " + std::to_string(*memory.left_processes) +
         (*memory.left_processes == 1 ? " process" : " processes") + " that it started held " +
         bytes_text(*memory.left_resident);
}

/// A process below the worker was killed, and the worker ended because of it.
bool names_a_kill(const WorkerExit& exit) {
  if (exit.status.by_signal()) return false;
  if (exit.status.code() == 128 + SIGKILL) return true;
  for (const char* text : {"killed by signal: Killed", "Killed", "exited unexpectedly",
                           "terminated abruptly", "died with <Signals.SIGKILL"}) {
    if (tells(exit, text)) return true;
  }
  return false;
}

Verdict out_of_memory(const WorkerExit& exit, std::string text) {
  Verdict verdict{"W-OOM", std::move(text)};
  verdict.evidence = memory_facts(exit);
  verdict.likely = likely_from(exit.evidence.memory);
  verdict.advice = kMoreMemory;
  return verdict;
}

struct StartSymptom {
  int code = 0;           // the exit code that goes with it
  const char* text = "";  // in the line
};
// Shells, env(1), the dynamic loader and Python about a program that they cannot run.
constexpr StartSymptom kStartSymptoms[] = {
    {127, ": not found"},
    {127, ": command not found"},
    {127, ": No such file or directory"},
    {127, "error while loading shared libraries: "},
    {127, "symbol lookup error: "},
    {126, ": Permission denied"},
    {126, ": bad interpreter: "},
    {126, "cannot execute"},
    {126, ": Is a directory"},
    {126, "Exec format error"},
    {2, "can't open file "},
    {1, ": No module named "},
    {1, ": Error while finding module specification for "},
    {1, "' not found (required by "},
};

Verdict of_node(const WorkerExit& exit, const char* code, const std::string& what,
                std::string_view line) {
  Verdict verdict{code, what + " on " + exit.worker.host + ": " + std::string(line)};
  verdict.subject = Verdict::Subject::kNode;
  verdict.evidence = {who(exit.worker) + " " + ended_text(exit.status)};
  return verdict;
}

/// "foo" of "ModuleNotFoundError: No module named 'foo'".
std::string missing_module(std::string_view line) {
  const auto open = line.find('\'');
  const auto close = line.find('\'', open + 1);
  if (open == std::string_view::npos || close == std::string_view::npos) return {};
  const std::string_view name = line.substr(open + 1, close - open - 1);
  constexpr std::string_view kOfNames =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
  const bool sound = name.find_first_not_of(kOfNames) == std::string_view::npos;
  return sound ? std::string(name) : std::string();  // it goes into a command to try
}

/// "foo.train" of "python3: No module named foo.train", and of "Error while finding module
/// specification for 'foo.train' (ModuleNotFoundError: No module named 'foo')"; empty: none.
std::string module_of_command(std::string_view line) {
  constexpr std::string_view kPlain = ": No module named ";
  constexpr std::string_view kDotted = ": Error while finding module specification for ";
  if (const auto at = line.find(kDotted); at != std::string_view::npos) {
    return missing_module(line.substr(at + kDotted.size()));
  }
  const auto at = line.find(kPlain);
  if (at == std::string_view::npos) return {};
  const std::string_view name = line.substr(at + kPlain.size());
  return missing_module("'" + std::string(name.substr(0, name.find(';'))) + "'");
}

Verdict cannot_run(const WorkerExit& exit, std::string_view line) {
  Verdict verdict = of_node(exit, "EXEC", "cannot run the command", line);
  const std::string module = module_of_command(line);
  if (module.empty()) return verdict;
  verdict.advice = "start ddprun in the folder that has " + module +
                   ", or from the environment that has it, on every node; python -m " + module;
  return verdict;
}

std::optional<Verdict> judge_import(const WorkerExit& exit) {
  for (const auto& [line, is_certain] : telling_lines(exit)) {
    if (!is_certain) continue;
    const bool module = line.substr(0, 20) == "ModuleNotFoundError:";
    const bool library =
        line.substr(0, 12) == "ImportError:" && contains(line, "cannot open shared object");
    if (!module && !library) continue;
    Verdict verdict = of_node(exit, "W-IMPORT", "an import fails", line);
    const std::string name = module ? missing_module(line) : "";
    if (!name.empty()) {
      verdict.likely = "the Python that runs on " + exit.worker.host + " does not have " + name;
      verdict.advice =
          "start ddprun from the environment that has it on every node; python -c 'import " + name +
          "'";
    }
    return verdict;
  }
  return std::nullopt;
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

bool killed_for_memory(const Evidence& evidence) {
  return evidence.memory.logged == 1 ||
         moved(evidence.memory.kills_before, evidence.memory.kills_after);
}

std::vector<std::string> memory_facts(const WorkerExit& exit) {
  const MemoryEvidence& memory = exit.evidence.memory;
  std::string text = counters_text(memory);
  if (memory.limit) add(text, "limit " + bytes_text(*memory.limit));
  if (memory.limit && memory.peak) text += ", peak " + bytes_text(*memory.peak);
  if (memory.worker_peak) add(text, "this rank held " + bytes_text(*memory.worker_peak));
  std::vector<std::string> facts;
  if (!text.empty()) facts.push_back(text);
  if (!memory.limit && memory.host_available && memory.host_total) {
    facts.push_back("the host has " + bytes_text(*memory.host_available) + " of " +
                    bytes_text(*memory.host_total) + " of memory available");
  }
  return facts;
}

std::optional<Verdict> judge_kill(const WorkerExit& exit) {
  const MemoryEvidence& memory = exit.evidence.memory;
  const bool killed = exit.status.by_signal() && exit.status.signal() == SIGKILL;
  const bool was_another = killed && memory.logged == 0;
  if (killed_for_memory(exit.evidence) && !was_another) {
    if (killed) {
      return out_of_memory(exit, "was killed by the kernel because host memory ran out");
    }
    if (!names_a_kill(exit)) return std::nullopt;
    return out_of_memory(exit, ended_text(exit.status) +
                                   " after the kernel killed a process of it because host memory "
                                   "ran out");
  }
  if (!killed) return std::nullopt;
  Verdict verdict{"W-KILLED", "received SIGKILL, not sent by ddprun; sender unknown",
                  memory_facts(exit), "", kAskTheHost};
  if (ruled_out(memory)) {
    const bool host_is_full = was_nearly_gone(memory) && !reaches(memory.peak, memory.limit, 95);
    if (host_is_full) verdict.likely = "a guard of the host's memory (systemd-oomd, earlyoom)";
    return verdict;
  }
  if (moved(memory.host_kills_before, memory.host_kills_after) || was_nearly_gone(memory)) {
    verdict.code = "W-OOM";
    verdict.likely = "the kernel, because host memory ran out";
    if (const std::string what = likely_from(memory); !what.empty()) verdict.likely += "; " + what;
    verdict.advice = kMoreMemory;
  }
  return verdict;
}

std::optional<Verdict> judge_start(const WorkerExit& exit) {
  if (exit.status.by_signal()) return std::nullopt;
  const auto lines = telling_lines(exit);
  for (const StartSymptom& symptom : kStartSymptoms) {
    if (symptom.code != exit.status.code() || lines.empty()) continue;
    const std::string_view line = lines.front().text;
    const auto at = line.find(symptom.text);
    if (at == std::string_view::npos) continue;
    // An exception's line is not a program's, which may quote one behind its own words.
    if (contains(line.substr(0, at + 2), "Error: ")) continue;
    return cannot_run(exit, line);
  }
  return judge_import(exit);
}

std::optional<Verdict> judge_nested(const WorkerExit& exit) {
  for (const auto& [line, is_certain] : telling_lines(exit)) {
    constexpr std::string_view kTorchrun = "torchrun: rank ";
    const std::size_t prefix = own_error_prefix(line);
    std::string inner;
    if (line.substr(0, kTorchrun.size()) == kTorchrun) {
      inner = "torchrun, which blames its " + std::string(line.substr(10));
    } else if (prefix > 0 && line.substr(prefix).starts_with("error [W-")) {
      // "first failure of the run" follows: of which run, this report says.
      inner = "ddprun, which says: " +
              std::string(line.substr(prefix, line.find(", first fail") - prefix));
    }
    if (inner.empty()) continue;
    return Verdict{"W-NESTED", ended_text(exit.status) + "; it runs " + inner};
  }
  return std::nullopt;
}

}  // namespace ddprun

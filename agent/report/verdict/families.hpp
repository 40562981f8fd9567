// The families of verdicts, each in a file of its own. Each answers for what it recognises; the
// order is in verdict.cpp. Internal to the verdict. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/report/verdict.hpp"
#include "base/worker_exit.hpp"

namespace ddprun {

inline constexpr const char* kMoreSharedMemory =
    "docker run --shm-size=8g (or --ipc=host); in Kubernetes mount an emptyDir with medium Memory "
    "on /dev/shm";
inline constexpr const char* kSharedByLoaders =
    "data-loader workers share tensors through /dev/shm";

/// A signal that ddprun passed on, or an interruption by one.
[[nodiscard]] std::optional<Verdict> judge_signal_passed_on(const WorkerExit& exit);
/// SIGKILL, and an exit because the kernel killed a process of the worker for memory.
[[nodiscard]] std::optional<Verdict> judge_kill(const WorkerExit& exit);
/// SIGXCPU, SIGXFSZ, and SIGKILL at the hard limit on CPU time.
[[nodiscard]] std::optional<Verdict> judge_limit_signal(const WorkerExit& exit);
/// SIGSEGV, SIGBUS, SIGABRT...
[[nodiscard]] std::optional<Verdict> judge_crash(const WorkerExit& exit);
/// A program, interpreter, library or module that is missing.
[[nodiscard]] std::optional<Verdict> judge_start(const WorkerExit& exit);
/// A launcher inside the worker has reported a rank of its own.
[[nodiscard]] std::optional<Verdict> judge_nested(const WorkerExit& exit);
/// What the last lines of output name: disk, limits, memory, devices.
[[nodiscard]] std::optional<Verdict> judge_output(const WorkerExit& exit);
/// The same from a line that need not be about the end; empty: none.
[[nodiscard]] std::string guess_from_output(const WorkerExit& exit);

/// What is measured about one resource, as lines of evidence.
[[nodiscard]] std::vector<std::string> memory_facts(const WorkerExit& exit);
[[nodiscard]] std::vector<std::string> full_disks(const Evidence& evidence);
[[nodiscard]] std::vector<std::string> shared_memory_facts(const Evidence& evidence);
/// Whether the kernel's counter of kills for memory moved in the worker's cgroup.
[[nodiscard]] bool killed_for_memory(const Evidence& evidence);

/// What to do about a limit, by its letter of ulimit: raise it before ddprun, as `before_ddprun`
/// says, or find who has lowered it since.
[[nodiscard]] std::string limit_advice(const LimitEvidence& limits, char letter,
                                       const std::string& before_ddprun);

/// "ended with exit code 1", "died of SIGSEGV (core dumped)".
[[nodiscard]] std::string ended_text(const ExitStatus& status);

/// A line that can name the cause.
struct TellingLine {
  std::string_view text;
  bool is_certain = true;  // off: the worker said something else after it
};
/// The most telling first: of a Python traceback that nothing followed its exceptions, the root
/// cause first; of other output the last lines, the last one first, until one from which the worker
/// went on. Certain is an exception that was not caught, and the last statement.
[[nodiscard]] std::vector<TellingLine> telling_lines(const WorkerExit& exit);
/// Whether a line that names the cause for certain contains `text`.
[[nodiscard]] bool tells(const WorkerExit& exit, std::string_view text);
/// Whether any line that is quoted contains `text`.
[[nodiscard]] bool quotes(const WorkerExit& exit, std::string_view text);

}  // namespace ddprun

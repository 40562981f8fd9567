// Where processes are: what /proc, an unwinder and a Python profiler say about them at one moment.
// Plain data. All text comes from other processes, and is printable() only where it is printed.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/exit_status.hpp"
#include "base/worker_exit.hpp"

namespace ddprun {

struct StackFrame {
  std::string function{};
  std::string where{};  // "train.py:310", "libc.so.6"
  friend bool operator==(const StackFrame&, const StackFrame&) = default;
};

struct ThreadStack {
  int tid = 0;
  std::string name{};                // as Python calls it; empty: none
  std::vector<StackFrame> frames{};  // the innermost first
};

struct ProcessStacks {
  int pid = 0;
  std::string name{};                 // as ps shows it
  char state = '?';                   // of its main thread, the letter of /proc/PID/stat
  std::string wait_channel{};         // where in the kernel it sleeps; empty: unknown
  std::string system_call{};          // its number, or "running"; empty: unknown
  std::vector<std::string> kernel{};  // innermost first; empty: not readable
  std::vector<ThreadStack> python{};  // main thread first
  std::vector<ThreadStack> native{};
  std::string missing{};  // why stacks are missing; empty: none is
};

/// A process of a rank that ended by a signal or with another code than 0, and that its parent has
/// not waited for.
struct EndedChild {
  int pid = 0;
  int parent = 0;
  std::string name{};
  ExitStatus status = ExitStatus::exited(0);
};

/// A rank, and of what it has started what does its work: a shell has the rank's program below it.
struct RankStacks {
  WorkerName worker{};
  std::vector<ProcessStacks> processes{};
  std::vector<EndedChild> ended{};
};

struct StackDump {
  std::vector<RankStacks> ranks{};
  std::chrono::milliseconds took{0};
};

}  // namespace ddprun

// ReceivedSignal: a signal to ddprun and where it came from; the rule which of two are one; and
// what was passed on to a worker. Pure.
#pragma once

#include <signal.h>

#include <array>
#include <bitset>
#include <cstddef>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/exit_status.hpp"

namespace ddprun {

struct ReceivedSignal {
  int number = 0;
  std::string from{};      // "slurmstepd (pid 4021)"; empty: no process, or not known
  bool by_kernel = false;  // a key, or a terminal that was closed
  bool all_nodes = false;  // it ends the run on every node, not the part of this node alone
};

/// "SIGTERM from slurmstepd (pid 4021)", "SIGTERM received".
[[nodiscard]] std::string received_text(const ReceivedSignal& signal);

/// Whether it ends a process that does nothing about it.
[[nodiscard]] bool ends_by_default(int signal);

/// A process that signals every process of a job reaches the agent and the front, which forwards
/// it. One that came directly and one of the same number that was forwarded, within a second, are
/// one signal; two of either kind are two.
class SignalPairs {
 public:
  enum class Way { kDirect, kForwarded };
  [[nodiscard]] bool completes_pair(int number, Way way, TimePoint now);

 private:
  static constexpr std::size_t kNumbers = 65;
  std::array<std::array<std::optional<TimePoint>, kNumbers>, 2> unpaired_ = {};
};

/// The signals that ddprun passed on to one worker.
class PassedSignals {
 public:
  void add(int number) {
    passed_.set(static_cast<std::size_t>(number) % passed_.size());
    last_ = number;
  }
  /// The one that the worker ended by, as a signal or as a shell's code; else SIGINT, which Python
  /// makes an exception of; else the last; 0: none.
  [[nodiscard]] int explaining(const ExitStatus& status) const {
    constexpr int kShell = 128;
    const int ended_by = status.shell_code() - kShell;
    if (has(ended_by)) return ended_by;
    return has(SIGINT) ? SIGINT : last_;
  }

 private:
  [[nodiscard]] bool has(int number) const {
    if (number <= 0 || static_cast<std::size_t>(number) >= passed_.size()) return false;
    return passed_[static_cast<std::size_t>(number)];
  }
  std::bitset<65> passed_;
  int last_ = 0;
};

}  // namespace ddprun

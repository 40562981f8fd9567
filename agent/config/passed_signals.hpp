// PassedSignals: the signals that ddprun passed on to one worker. Pure, no thread rule.
#pragma once

#include <signal.h>

#include <bitset>
#include <cstddef>

#include "base/exit_status.hpp"

namespace ddprun {

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

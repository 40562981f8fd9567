// Processor: how much of the processors a process has had, as /proc shows it. Zero where the kernel
// does not count it. Thread rule: none.
#pragma once

#include <sys/types.h>

#include "base/clock.hpp"

namespace ddprun::warm {

struct Processor {
  Duration ran{};
  Duration waited{};   // ready to run, as far as that is over
  bool ready = false;  // it runs, or waits for a processor

  /// How long it has been ready without one, in the time `since` it was asked; as `before` it was
  /// before that.
  [[nodiscard]] Duration starved(const Processor& before, Duration since) const;
};

[[nodiscard]] Processor processor_of(pid_t process);

/// Whether a process of this session, other than its leader, is ready to run.
[[nodiscard]] bool has_ready_member(pid_t session);

}  // namespace ddprun::warm

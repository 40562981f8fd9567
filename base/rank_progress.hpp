// RankProgress: what the kernel counts of one rank, its leader and all that this has started, and
// the step that it reported. Plain data.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.hpp"

namespace ddprun {

/// What takes a look at every thread and descriptor.
struct CloseLook {
  std::uint64_t io_wait = 0;  // differs when a thread begins, ends or continues an I/O wait (D)
  std::uint64_t network = 0;  // bytes over TCP, both ways, without those of the round's store
  bool for_user = false;      // a thread waits for a terminal, or a debugger traces it
};

struct RankProgress {
  Duration cpu{};                    // user and system
  std::uint64_t written = 0;         // bytes, to files, pipes and terminals
  std::uint64_t processes = 0;       // differs when a process has started or ended
  std::int64_t step = -1;            // the last that it reported; -1: none
  std::uint64_t read = 0;            // bytes, from files, pipes and sockets, by read()
  std::uint64_t storage = 0;         // bytes from and to devices, also of mapped files
  std::uint64_t faults = 0;          // pages that were mapped without a wait
  std::uint64_t waited_faults = 0;   // pages that were waited for
  bool held = false;                 // it may wait until a console or a disk takes its output
  std::optional<CloseLook> close{};  // none: that was not looked at
};

}  // namespace ddprun

// wait_text: what the line on the terminal says of something that is waited for, and when it is
// drawn again. Pure: time is an argument. Thread rule: none.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>

#include "base/clock.hpp"

namespace ddprun {

// A wait that ends sooner gets no line on the terminal.
inline constexpr std::chrono::seconds kWaitLineDelay{1};

/// From `since`, which the line counts; `until`: what happens then, without it the wait has no
/// limit.
struct CoordinatorWait {
  std::string address;
  TimePoint since;
  TimePoint until;
};
struct NodesWait {
  int here = 0;  // that have joined
  int min = 1;
  int max = 1;
  TimePoint since;
  std::optional<TimePoint> until{};  // with enough of them the round starts; none: it has started
};
struct GpuWait {
  TimePoint since;
  TimePoint until;
};
struct StopWait {
  int running = 0;
  int all = 0;
  TimePoint kill_at;
};
using Wait = std::variant<CoordinatorWait, NodesWait, GpuWait, StopWait>;

/// "waiting for 1 of 2 nodes, 12 s of 10 min", "stopping 3 of 8 ranks, SIGKILL in 22 s"; empty:
/// there is nothing to wait for any more.
[[nodiscard]] std::string wait_text(const Wait& wait, TimePoint now);

/// Of a line that was to appear at `since`: after kWaitLineDelay, then at each full second.
[[nodiscard]] TimePoint next_drawing(TimePoint since, TimePoint now);

/// What fits into a window without its last column, where some terminals begin another line; empty
/// where the width (0) is unknown.
[[nodiscard]] std::string cut_to_window(const std::string& text, int columns);

}  // namespace ddprun

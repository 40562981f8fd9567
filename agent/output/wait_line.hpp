// What is said of a wait: a line that is redrawn on the terminal, and a line in the log. Thread
// rule: the io_context's thread, the texts: none.
#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "agent/output/console.hpp"
#include "agent/output/terminal.hpp"
#include "base/clock.hpp"

namespace spdlog {
class logger;
}

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

/// One line about what is waited for, redrawn on the terminal every second, below all that is
/// written there. The writer of the console erases it before any other byte. It is not drawn within
/// a worker's unfinished line, in the background, or where workers write past the agent. Where it
/// is not made, there is none, and it costs nothing. Shares console and terminal.
class WaitLine {
 public:
  /// `user`: the process that the user started. While its job is in the background, the line on
  /// which the cursor stands is the shell's.
  WaitLine(const boost::asio::any_io_executor& executor, std::shared_ptr<ConsoleWriter> console,
           std::shared_ptr<Terminal> terminal, pid_t user)
      : console_(std::move(console)),
        terminal_(std::move(terminal)),
        user_(user),
        timer_(executor) {}

  enum class Of { kNothing, kRendezvous, kGpus, kStop };
  /// One wait at a time: another one takes the line over. What is called until end().
  void begin(Of of, std::function<Wait()> wait);
  /// Nothing if another wait has the line.
  void end(Of of);

 private:
  void arm();
  void draw();

  std::shared_ptr<ConsoleWriter> console_;
  std::shared_ptr<Terminal> terminal_;
  pid_t user_;
  boost::asio::steady_timer timer_;
  Of of_ = Of::kNothing;
  std::function<Wait()> wait_;
  TimePoint since_{};
};

/// Logs one line about a wait for a file system that takes longer than kQuietMax. Destroyed when
/// the wait ends; the logger outlives it.
class WaitNote {
 public:
  /// A wait for `what` begins now and lasts at most until `limit` (TimePoint::max(): until a
  /// signal).
  WaitNote(const boost::asio::any_io_executor& executor, spdlog::logger& logger,
           const std::string& what, TimePoint limit);

 private:
  boost::asio::steady_timer due_;
};

}  // namespace ddprun

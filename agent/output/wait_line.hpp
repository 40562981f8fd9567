// WaitLine: one line about what is waited for, redrawn on the terminal every second, below all that
// is written there. The writer of the console erases it before any other byte. It is not drawn
// within a worker's unfinished line, in the background, or where workers write past the agent.
// Where it is not made, there is none, and it costs nothing. Thread rule: the io_context's thread.
// Ownership: shares console and terminal.
#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>

#include "agent/output/console.hpp"
#include "agent/output/terminal.hpp"
#include "agent/output/wait_text.hpp"
#include "base/clock.hpp"

namespace ddprun {

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

}  // namespace ddprun

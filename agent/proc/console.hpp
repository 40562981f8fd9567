// ConsoleWriter: the launcher's own stdout or stderr as the agent writes to it. Bounded, never
// blocking for ever, and never changing the open file that the workers share (no O_NONBLOCK on it).
// Thread rule: the io_context's thread. Ownership: shared by everybody who writes; the descriptor
// stays the caller's and must outlive it. Errors: a closed console swallows what is written to it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "agent/proc/console_target.hpp"
#include "base/clock.hpp"

namespace ddprun {

class ConsoleWriter : public std::enable_shared_from_this<ConsoleWriter> {
 public:
  enum class Taken { kYes, kDropped };

  ConsoleWriter(boost::asio::any_io_executor executor, int descriptor);

  /// Writes at once what the console takes and queues the rest. Whole lines are never torn by other
  /// writes of this class. A full queue drops all of `bytes`: the lines are counted, and one
  /// message tells how many are missing where they are missing.
  Taken write(std::string_view bytes);
  /// Whether the caller should wait for room() before it writes more.
  [[nodiscard]] bool full() const;
  /// Completes when the queue has room, or when the console took nothing for kConsoleStallMax: then
  /// write() drops. So no wait is longer than the console's own silence. Cancelling (terminal) is
  /// safe.
  [[nodiscard]] boost::asio::awaitable<void> room();
  /// Completes when everything is written, when the console is closed or took nothing for
  /// kConsoleStallMax, and after kConsoleFlushMax in any case.
  [[nodiscard]] boost::asio::awaitable<void> flush();

  [[nodiscard]] std::uint64_t dropped_lines() const { return dropped_total_; }
  [[nodiscard]] bool closed() const { return closed_; }

 private:
  void push(std::string_view bytes);
  void write_queue();
  void announce_drops();
  void wait_for_console();
  void on_writable();
  void close();
  [[nodiscard]] std::size_t queued() const { return queue_.size() - head_; }

  ConsoleTarget target_;
  boost::asio::steady_timer stall_;    // runs while the console takes nothing
  boost::asio::steady_timer changed_;  // never expires by itself: cancelled when the queue shrank
  std::string queue_;
  std::size_t head_ = 0;  // bytes of queue_ that are written already
  bool waiting_ = false;
  bool stalled_ = false;
  bool closed_ = false;
  bool mid_line_ = false;            // the last byte taken was not a newline
  std::uint64_t dropped_lines_ = 0;  // since the last message about them
  std::uint64_t dropped_total_ = 0;
};

/// Both consoles of a launcher; one writer when they are the same file (2>&1), so that lines stay
/// whole.
struct Consoles {
  std::shared_ptr<ConsoleWriter> out;
  std::shared_ptr<ConsoleWriter> err;
};

[[nodiscard]] Consoles open_consoles(boost::asio::any_io_executor executor, int out_descriptor = 1,
                                     int err_descriptor = 2);

}  // namespace ddprun

// ConsoleWriter: the launcher's own stdout or stderr as the agent writes to it. Bounded, never
// blocking for ever, and never changing the open file that the workers share (no O_NONBLOCK on it).
// Thread rule: the io_context's thread. Ownership: shared by all writers; the descriptor
// stays the caller's and must outlive it. Errors: what a full disk or a closed console does not
// take is lost, and counted.
#pragma once

#include <limits.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "agent/output/console_queue.hpp"
#include "agent/output/console_target.hpp"
#include "agent/output/prefixed_lines.hpp"
#include "agent/output/terminal.hpp"
#include "base/clock.hpp"

namespace ddprun {

// What workers left in their pipes when they ended waits beyond that: it holds no worker up. More
// is dropped and counted.
inline constexpr std::size_t kConsoleBacklogBytesMax = 16 * kConsoleQueueBytesMax;
// Lines of ddprun's own that wait for the console; what is more is counted as not shown.
inline constexpr std::size_t kConsoleOwnBytesMax = 1024 * 1024;
// So long own lines go before the workers' after that; what the console still did not take of them
// is put into a file of the log directory.
inline constexpr std::chrono::seconds kConsoleHurryMax{1};
// A write of at most this many bytes to a FIFO is atomic (POSIX), so lines up to it stay whole even
// among workers that write to the same pipe themselves.
inline constexpr std::size_t kAtomicWriteBytesMax = PIPE_BUF;

class ConsoleWriter : public std::enable_shared_from_this<ConsoleWriter> {
 public:
  enum class Taken { kYes, kDropped };
  /// What becomes of output while the console takes nothing: streams with a log file, or beside
  /// another one, lose lines rather than hold up the worker.
  enum class OnStall { kDrop, kWait };

  ConsoleWriter(boost::asio::any_io_executor executor, int descriptor);

  /// A worker's output: writes at once what the console takes and queues the rest. Whole lines are
  /// never torn by other writes of this class. A full queue drops all of `bytes`: the lines are
  /// counted, and one message says how many are missing where they are missing.
  Taken write(std::string_view bytes);
  /// Whole lines of ddprun's own: they are not dropped for a worker's, and while the console takes
  /// nothing they pass what waits of them. Beyond kConsoleOwnBytesMax they are counted as dropped.
  void write_own(std::string_view lines);
  /// One line that replaces the one drawn before, and is erased before anything else is written.
  /// Only on a terminal. Not drawn where the cursor is within a line of a worker, or while the
  /// terminal takes nothing.
  void draw_line(std::string_view text);
  void erase_line();
  /// Whether a line that was drawn stands there.
  [[nodiscard]] bool line_is_drawn() const { return drawn_; }
  /// Whether the caller should wait for room() before it writes more.
  [[nodiscard]] bool full(OnStall on_stall = OnStall::kDrop) const;
  /// Completes when the queue has room, or, with kDrop, when the console took nothing for so long
  /// as hold_workers_up_for() says: then write() drops. Cancelling (terminal) is safe.
  [[nodiscard]] boost::asio::awaitable<void> room(OnStall on_stall = OnStall::kDrop);
  /// Completes when everything is written or the console is closed, or at `deadline`.
  [[nodiscard]] boost::asio::awaitable<void> written(TimePoint deadline);
  /// From now on flush() has no deadline while output of workers waits: it exists only here, and
  /// without ddprun its worker would wait for the console.
  void keep_all() { keeps_all_ = true; }
  /// The run is stopped: flush() has its deadline in any case, and no worker is held up for long.
  void stop_keeping();
  /// kConsoleStallMax, unless workers are being stopped.
  void hold_workers_up_for(Duration max);
  /// Completes when everything is written or the console is closed. At `deadline`, but so long
  /// after the console took something as `silence` says, or at hurry(), own lines go first and have
  /// kConsoleHurryMax; then it completes in any case.
  [[nodiscard]] boost::asio::awaitable<void> flush(TimePoint deadline, Duration silence = {});
  void hurry();

  [[nodiscard]] std::uint64_t dropped_lines() const { return dropped_total_; }
  /// A worker's lines that wait, or are missing without a message in their place.
  [[nodiscard]] std::uint64_t missing_lines() const;
  /// Why: "it was closed", "No space left on device".
  [[nodiscard]] std::string missing_because() const;
  [[nodiscard]] bool closed() const { return closed_; }
  /// Own lines are said to what is drawn here for workers.
  void set_live(std::shared_ptr<LiveLine> live) { live_ = std::move(live); }
  /// Own lines that the console did not take yet.
  [[nodiscard]] std::string unwritten_own_lines() const;
  /// Own lines that a full disk or a closed console did not take.
  [[nodiscard]] const std::string& lost_own_lines() const { return lost_own_; }

 private:
  /// What is being written to a file.
  enum class InFlight { kNothing, kWorker, kOwn, kNote };
  /// A worker's lines that no console has, of pieces that need not be whole lines.
  struct LostLines {
    std::uint64_t ended = 0;
    bool last_is_cut = false;
    [[nodiscard]] std::uint64_t count() const { return ended + (last_is_cut ? 1 : 0); }
  };
  void drop(std::string_view bytes);
  void lose(std::string_view bytes, ConsoleQueue::Origin origin);
  void lose_queue();
  void push(std::string_view bytes, ConsoleQueue::Origin origin);
  void write_queue();
  [[nodiscard]] bool erase_drawn();
  [[nodiscard]] std::string note_of_lost_lines() const;
  void put_in_flight(std::string_view front);
  void on_file_written();
  void announce_drops();
  void wait_for_console();
  void watch_for_stall();
  void stop_watching();
  void on_writable();
  [[nodiscard]] boost::asio::awaitable<void> change();
  [[nodiscard]] std::shared_ptr<boost::asio::steady_timer> wake_at(TimePoint time);
  void hurry_at(const std::shared_ptr<boost::asio::steady_timer>& limit, Duration silence);
  void close(int error);

  ConsoleTarget target_;
  boost::asio::steady_timer stall_;    // runs while the console takes nothing of what waits
  boost::asio::steady_timer changed_;  // never expires by itself: cancelled when the queue shrank
  ConsoleQueue queue_;
  InFlight in_flight_ = InFlight::kNothing;
  std::string own_in_flight_;  // the text, of kOwn
  bool waiting_ = false;
  bool watched_ = false;  // stall_ runs
  bool stalled_ = false;
  Duration stall_max_;
  TimePoint taken_at_{};  // when the console last took something
  bool closed_ = false;
  bool hurried_ = false;
  bool stopped_ = false;
  bool keeps_all_ = false;
  bool drawn_ = false;               // see draw_line()
  bool mid_line_ = false;            // what was queued or written last ends within a line
  std::uint64_t dropped_lines_ = 0;  // since the last message about them
  std::uint64_t dropped_total_ = 0;
  int failure_ = 0;   // errno of the last write that lost something
  bool cut_ = false;  // the console got only a part of a line that is lost
  LostLines lost_;    // since the last message about them
  std::string lost_own_;
  std::shared_ptr<LiveLine> live_{};
};

class WaitLine;

/// Both consoles of a launcher; one writer when they are the same file (2>&1), so that lines stay
/// whole.
struct Consoles {
  std::shared_ptr<ConsoleWriter> out;
  std::shared_ptr<ConsoleWriter> err;
  std::shared_ptr<Terminal> terminal{};  // of stderr; null where that is none
  std::shared_ptr<LiveLine> live{};      // of the same
  std::shared_ptr<WaitLine> waits{};     // of the same; null: nothing is drawn there
};

[[nodiscard]] Consoles open_consoles(boost::asio::any_io_executor executor, int out_descriptor = 1,
                                     int err_descriptor = 2);

}  // namespace ddprun

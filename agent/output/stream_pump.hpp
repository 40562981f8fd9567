// StreamPump: one output stream of one worker, from its descriptor to file, console and tail.
// Thread rule: the io_context's thread. Ownership: shared by WorkerOutput and its own coroutine.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "agent/output/console.hpp"
#include "agent/output/lines.hpp"
#include "agent/output/log_file.hpp"
#include "agent/output/output.hpp"
#include "agent/output/tail.hpp"
#include "agent/output/terminal.hpp"

namespace ddprun {

// Bytes taken from a worker's pipe in one go; the rest waits in the pipe, so that every stream gets
// its turn.
inline constexpr std::size_t kPumpChunkBytes = 64 * 1024;

/// What a pump needs besides its plan.
struct PumpSinks {
  std::shared_ptr<ConsoleWriter> console;
  std::string prefix;
  Warn warn;
  Stream stream = Stream::kStdout;
  std::shared_ptr<std::uint64_t> bytes;  // counts what is read; may be null
  std::string label{};
  int label_columns = 0;
  std::shared_ptr<Terminal> terminal{};  // the console, if it is one
  std::shared_ptr<LiveLine> live{};      // of that
  ConsoleWriter::OnStall on_stall = ConsoleWriter::OnStall::kDrop;
};

class StreamPump : public std::enable_shared_from_this<StreamPump> {
 public:
  /// Opens what the route needs. Fails with kSystem; nothing stays open then.
  [[nodiscard]] static Result<std::shared_ptr<StreamPump>> open(
      boost::asio::any_io_executor executor, const StreamPlan& plan, PumpSinks sinks);
  StreamPump(boost::asio::any_io_executor executor, const StreamPlan& plan, PumpSinks sinks);
  StreamPump(const StreamPump&) = delete;
  StreamPump& operator=(const StreamPump&) = delete;
  ~StreamPump();

  void set_prefix(const std::string& prefix, const std::string& label);
  /// Between kPass and kLog, for a stream that has a log file: the worker keeps its descriptor.
  void set_route(Route route);
  [[nodiscard]] Route route() const { return plan_.route; }
  /// What the worker gets; valid until start().
  [[nodiscard]] int worker_descriptor() const { return worker_end_; }
  /// Whether the worker sees what the console is: no, if the system has no pseudoterminal to give.
  [[nodiscard]] bool is_like_console() const {
    return is_terminal_ == (sinks_.terminal != nullptr);
  }
  /// Nothing of it is dropped, as nothing is of a stream that a worker inherits.
  void lose_nothing();
  /// Of a stream that goes to its file alone: whether the console shows it all the same, each line
  /// behind the label, from its last line on. False: it has another way.
  bool reveal(bool on);
  /// Closes the worker's end here and begins to read, if there is something to read.
  void start();
  /// Completes at the end of the stream or at `deadline`; reads what is there and closes the pipe.
  [[nodiscard]] boost::asio::awaitable<void> drain(TimePoint deadline);
  /// Reads what is there, without waiting.
  void catch_up();
  /// Stops reading and closes the pipe; what is in it is lost.
  void stop();
  [[nodiscard]] std::string tail() const;
  void forget() {
    tail_.clear();
    times_.clear();
  }
  [[nodiscard]] const WriteTimes& times() const { return times_; }
  /// When the worker last wrote, or was started; none: what it writes does not pass through here.
  [[nodiscard]] std::optional<TimePoint> last_written() const { return read_at_; }
  /// Whether the worker may have to wait, and for what.
  enum class Held { kNo, kByConsole, kByLog };
  [[nodiscard]] Held held_up() const;

 private:
  enum class Read { kSome, kNothing, kEnd };
  [[nodiscard]] std::optional<Error> open_way_to_console();
  [[nodiscard]] std::optional<Error> open_pipe();
  [[nodiscard]] std::optional<Error> take_ends(int ours, int workers);
  [[nodiscard]] std::optional<Error> open_null();
  [[nodiscard]] boost::asio::awaitable<void> pump();
  [[nodiscard]] bool is_logged() const;
  Read read_once();
  void take(std::string_view bytes);
  void pass(std::string_view bytes);
  void pass_held();
  void label(const std::string& shown);
  void show_unfinished_at(TimePoint due);
  void show(std::string_view bytes);
  void show_behind_label(std::string_view bytes);
  void tee(std::string_view bytes);
  void add_line(std::string_view line);
  void finish();
  void close_worker_end();

  StreamPlan plan_;
  PumpSinks sinks_;
  int worker_end_ = -1;
  bool owns_worker_end_ = false;
  bool is_terminal_ = false;
  bool ended_ = true;  // nothing left to read
  std::optional<TimePoint> read_at_{};
  bool revealed_ = false;
  bool begins_line_ = true;        // of what is revealed
  bool skips_to_newline_ = false;  // the console dropped the first part of this line
  boost::asio::posix::stream_descriptor pipe_;
  boost::asio::steady_timer end_;   // cancelled when the stream has ended
  std::string held_;                // the beginning of a line, which soon continues or is shown
  boost::asio::steady_timer hold_;  // runs while something is held, or labelled_ has it due
  std::optional<TimePoint> label_due_{};
  bool was_long_ = false;  // what was read before
  PrefixedLines labelled_;
  LineAssembler lines_;
  std::string block_;  // whole lines of one read, with prefix
  Tail tail_;
  WriteTimes times_;
};

}  // namespace ddprun

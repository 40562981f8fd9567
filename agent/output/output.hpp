// WorkerOutput: the two output streams of one worker, from before its start until the pipes are
// drained. Thread rule: the io_context's thread. Ownership: owns pipes and files; shares consoles
// and filter logs.
//
//   auto output = WorkerOutput::open(executor, consoles, plan);   // descriptors for the worker
//   spawn(executor, {..., output->descriptor(Stream::kStdout),
//   output->descriptor(Stream::kStderr)}); output->start(); // after every spawn, failed or not
//   ... the worker has ended ...
//   co_await output->drain(deadline);                             // nothing it wrote is lost
//   output->tail(Stream::kStderr);                                // for the report
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "agent/output/console.hpp"
#include "agent/output/output_plan.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace ddprun {

// How long the output of a dead worker is read while a process it left behind keeps the pipe open.
// What the worker itself wrote is in the pipe by then and never lost.
inline constexpr std::chrono::milliseconds kDrainMax{500};

class StreamPump;

class WorkerOutput {
 public:
  /// Opens files and pipes as the routes say. Fails with kSystem (file cannot be made, out of
  /// descriptors); then nothing stays open.
  [[nodiscard]] static Result<WorkerOutput> open(boost::asio::any_io_executor executor,
                                                 const Consoles& consoles,
                                                 const WorkerOutputPlan& plan);
  WorkerOutput(WorkerOutput&&) noexcept;
  WorkerOutput& operator=(WorkerOutput&&) noexcept;
  ~WorkerOutput();

  /// The worker has another rank: `plan` is that of one that starts with it. Returns the route that
  /// its stdout has now.
  Route set_rank(const WorkerOutputPlan& plan);
  /// What the worker gets as its 1 or 2. Valid until start().
  [[nodiscard]] int descriptor(Stream stream) const;
  /// Closes the worker's ends in this process and begins to read. Call it after spawn().
  void start();
  /// Completes when all writers have closed the pipes, or at `deadline` (kDrainMax is a good one):
  /// then what is in the pipes is read and they are closed. Call it once the worker has ended.
  [[nodiscard]] boost::asio::awaitable<void> drain(TimePoint deadline);
  /// Reads what is in the pipes now, without waiting: all that a worker that has ended wrote. A
  /// process it left behind may continue to write; drain() still follows.
  void catch_up();
  /// The last bytes (at most kTailBytesMax) that the worker wrote to this stream through here;
  /// empty when it was inherited, or goes straight to its file, which has them. Where both streams
  /// go one way, that of stderr has both.
  [[nodiscard]] std::string tail(Stream stream) const;
  /// The tail of stderr; or those of both streams, in order, if they went one way, or if stdout was
  /// written line by line, so that its order is known.
  struct LastWords {
    std::string text;
    bool of_both = false;
  };
  [[nodiscard]] LastWords last_words() const;
  /// Whether the worker got one pipe or pseudoterminal for both streams: see shares_a_way().
  [[nodiscard]] bool is_one_way() const { return out_ == err_; }
  /// Its stdout is shown although its rank is not 0, from its last line on: it may be a prompt.
  /// False: it does not go to a file alone.
  bool reveal(bool on);
  /// Whether the worker may have to wait until a console or a disk takes its output.
  [[nodiscard]] bool is_held_up() const;
  /// Tails begin with what the worker writes from now on.
  void forget();
  /// When the worker last wrote to either stream, or was started; none unless both pass through
  /// here.
  [[nodiscard]] std::optional<TimePoint> last_written() const;
  /// Whether its stderr passes through here.
  [[nodiscard]] bool sees_stderr() const;

 private:
  WorkerOutput() = default;

  std::shared_ptr<StreamPump> out_;
  std::shared_ptr<StreamPump> err_;
};

}  // namespace ddprun

// TimerPipe: the named pipe of TORCHELASTIC_TIMER_FILE, to which workers write timers that they set
// and release (torch.distributed.elastic.timer). Reads lines, keeps a TimerTable, and tells of the
// timers that expire. Every line may be garbage. Thread rule: the io_context's thread, but for
// open_pipe(). Ownership: the logger outlives it. Errors: what is wrong with a line is said once,
// for the first one.
#pragma once

#include <limits.h>

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/watch/timer_table.hpp"
#include "base/result.hpp"

namespace spdlog {
class logger;
}

namespace ddprun {

// One line of the pipe: what the kernel writes in one piece (PIPE_BUF) and its end. A longer one is
// ignored, which is said once.
inline constexpr std::size_t kTimerLineBytesMax = 4096;

struct OpenPipe {
  int descriptor = -1;  // of the caller
  std::string path{};
  std::string note{};  // why it is not at the place that was asked for; empty: it is
};
/// Makes a named pipe that only this user can open. `wanted`: TORCHELASTIC_TIMER_FILE; where
/// another process reads one, or something else is, and where that is empty, it is made at `own`. A
/// pipe that no process reads is replaced. May take as long as the file system does. Errors:
/// kSystem.
[[nodiscard]] Result<OpenPipe> open_pipe(const std::string& wanted, const Result<std::string>& own);

class TimerPipe {
 public:
  struct Workers {
    /// Whether the process is a worker, or belongs to one.
    std::function<bool(int pid)> has;
    /// A timer expired. False: its worker takes part in no round; see round_runs().
    std::function<bool(const WorkerTimer& timer)> expired;
  };
  TimerPipe(const boost::asio::any_io_executor& executor, const OpenPipe& pipe,
            spdlog::logger& logger, Workers workers);

  [[nodiscard]] const std::string& path() const { return path_; }
  /// All workers of a round run: timers that expired before that start again.
  void round_runs();
  /// The workers were stopped for so long, and are continued after this: no timer counts that time,
  /// also none whose request is still to be read.
  void extend(Duration by);

 private:
  static constexpr std::size_t kChunk = 16 * 1024;

  void read();
  [[nodiscard]] bool take_chunk(Duration stopped);
  void take(std::string_view bytes, Duration stopped);
  void take_line(std::string_view line, Duration stopped);
  void set(const TimerRequest& request, Duration stopped);
  void forget_ended();
  void refuse(const std::string& why);
  void arm();
  void tell(std::vector<WorkerTimer> due);

  std::string path_;
  spdlog::logger& logger_;
  Workers workers_;
  TimerTable table_;
  std::string line_;         // begun
  bool skips_line_ = false;  // too long: up to its end
  bool refused_ = false;     // and said
  TimePoint looked_for_ended_{};
  std::array<char, kChunk> chunk_{};
  boost::asio::posix::stream_descriptor stream_;
  boost::asio::steady_timer due_;
  std::shared_ptr<void> alive_ = std::make_shared<int>();  // a handler may run after the destructor
};

}  // namespace ddprun

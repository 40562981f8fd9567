// ConsoleQueue: the bytes that wait for a console, each block marked as a worker's output or as
// lines of ddprun's own, which must not be lost behind it. Pure. Thread rule: one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace ddprun {

// Output that waits for the launcher's own stdout or stderr. Beyond it the streams wait, and if the
// console takes nothing for kConsoleStallMax, whole lines are dropped and counted. While workers
// are stopped, who may have a last word to write, it is kConsoleStallAtStop.
inline constexpr std::size_t kConsoleQueueBytesMax = 1024 * 1024;
inline constexpr std::chrono::milliseconds kConsoleStallMax{60'000};
inline constexpr std::chrono::milliseconds kConsoleStallAtStop{1000};

class ConsoleQueue {
 public:
  enum class Origin { kWorker, kOwn };

  void push(std::string_view bytes, Origin origin);
  /// What is to be written next; empty when nothing waits. Valid until the next change. Own lines
  /// begin with a newline where a worker's line would swallow the first of them.
  [[nodiscard]] std::string_view front();
  [[nodiscard]] bool front_is_own() const { return blocks_.at(0).origin == Origin::kOwn; }
  /// The first `bytes` of front() were written.
  void pop(std::size_t bytes);
  /// Own lines pass all worker output but the rest of a line that was written in part.
  void put_own_first();
  void clear();

  [[nodiscard]] bool empty() const { return blocks_.empty(); }
  [[nodiscard]] std::size_t worker_bytes() const { return worker_bytes_; }
  [[nodiscard]] std::size_t own_bytes() const { return own_bytes_; }
  /// Whether the next byte of front() begins a line of ddprun's own.
  [[nodiscard]] bool begins_own_line() const;
  /// The own lines that are not written yet; one that was written in part is there as a whole.
  [[nodiscard]] std::string own_lines() const;
  /// The worker output that is not written yet.
  [[nodiscard]] std::string worker_output() const { return rest(Origin::kWorker); }

 private:
  struct Block {
    std::string bytes;
    Origin origin;
  };

  [[nodiscard]] std::string rest(Origin origin) const;
  void append(std::string_view bytes, Origin origin);

  std::deque<Block> blocks_;
  std::size_t head_ = 0;  // bytes of the first block that are written already
  std::size_t worker_bytes_ = 0;
  std::size_t own_bytes_ = 0;
  std::optional<Origin> torn_{};  // whose line was written in part
};

}  // namespace ddprun

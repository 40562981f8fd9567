// One write beside the training: at most one at a time, in a thread of its own. The owner asks for
// the result between two steps. The destructor waits. Thread rule: the job runs in the other
// thread, every function is called by the owner. Errors: a TrainerError of the job is its result;
// any other exception is thrown by poll() or wait().
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <string>

namespace ddprun::trainer {

struct WriteResult {
  std::string problem{};                // empty: written
  std::chrono::nanoseconds cpu_time{};  // taken from the training if every core is busy
};

class BackgroundWrite {
 public:
  /// From start() until poll() or wait() has returned the result.
  [[nodiscard]] bool busy() const { return result_.valid(); }
  /// Only if not busy.
  void start(std::function<void()> job);
  /// nullopt: the job still runs, or there is none.
  [[nodiscard]] std::optional<WriteResult> poll();
  /// nullopt: there is none.
  std::optional<WriteResult> wait();

 private:
  std::future<WriteResult> result_;
};

}  // namespace ddprun::trainer

#include "trainer/checkpoint/background_write.hpp"

#include <time.h>

#include <utility>

#include "trainer/error.hpp"

namespace ddprun::trainer {

namespace {

std::chrono::nanoseconds cpu_time_of_thread() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

WriteResult run(const std::function<void()>& job) {
  WriteResult result;
  const auto before = cpu_time_of_thread();
  try {
    job();
  } catch (const TrainerError& error) {
    result.problem = error.what();
  }
  result.cpu_time = cpu_time_of_thread() - before;
  return result;
}

}  // namespace

void BackgroundWrite::start(std::function<void()> job) {
  // Deferred if no thread can be created: then the next poll() runs the job.
  constexpr auto kPolicy = std::launch::async | std::launch::deferred;
  result_ = std::async(kPolicy, [job = std::move(job)] { return run(job); });
}

std::optional<WriteResult> BackgroundWrite::poll() {
  if (!busy() || result_.wait_for(std::chrono::seconds(0)) == std::future_status::timeout) {
    return std::nullopt;
  }
  return result_.get();
}

std::optional<WriteResult> BackgroundWrite::wait() {
  if (!busy()) return std::nullopt;
  return result_.get();
}

}  // namespace ddprun::trainer

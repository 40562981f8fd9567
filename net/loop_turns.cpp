#include "net/loop_turns.hpp"

#include <errno.h>
#include <time.h>

#include <algorithm>
#include <utility>

namespace ddprun::net {

void LoopTurns::begin(TimePoint now) {
  began_ = now;
  if (!std::exchange(runs_, true) || now - cpu_read_at_ >= kCpuBaseAge) {
    cpu_base_ = read_cpu_();
    cpu_read_at_ = now;
  }
  if (std::exchange(is_news_, false) && told_) told_(longest_);
}

void LoopTurns::end(TimePoint now) {
  if (!runs_) return;
  const Duration took = now - began_;
  const bool is_longest = took > longest_.took;
  if (took < kLongTurn) {
    if (is_longest) longest_ = {took, took};
    return;
  }
  const Duration cpu = std::min(took, read_cpu_() - cpu_base_);
  most_cpu_ = std::max(most_cpu_, cpu);
  if (!is_longest) return;
  longest_ = {took, cpu};
  is_news_ = true;
}

Duration LoopTurns::cpu_of_this_thread() {
  timespec used = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

LoopTurns& LoopTurns::here() {
  thread_local LoopTurns turns;
  return turns;
}

int epoll_wait_between_turns(int set, epoll_event* events, int events_max, int timeout_ms) {
  LoopTurns& turns = LoopTurns::here();
  turns.end(Clock::now());
  const int count = ::epoll_wait(set, events, events_max, timeout_ms);
  const int error = errno;
  turns.begin(Clock::now());
  errno = error;
  return count;
}

}  // namespace ddprun::net

// How a worker learns of a stop that leaves it time to save.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>

#include "worker_api/link.hpp"
#include "worker_api/rounds.hpp"
#include "worker_api/worker.h"

using namespace ddprun::worker_link;

namespace {

constexpr std::array<int, 4> kStopSignals{SIGTERM, SIGINT, SIGHUP, SIGQUIT};

// A watcher may be started meanwhile.
constexpr std::int64_t kSlice = 500;

/// Waits until something has come, or not. Whether the link has ended.
bool wait_for_change(int timeout_ms) {
  Rounds& all = rounds();
  std::unique_lock lock(all.mutex);
  if (all.is_watched) {
    all.changed.wait_for(lock, std::chrono::milliseconds(timeout_ms));
    return all.has_ended;
  }
  lock.unlock();
  pollfd link{link_socket(), POLLIN, 0};
  if (::poll(&link, 1, timeout_ms) <= 0) return false;
  if ((link.revents & (POLLHUP | POLLERR)) != 0) return true;
  // A round, for the watcher of the process that this one was forked from.
  if (ddprun_worker_stop_requested() == 0) ::poll(nullptr, 0, 1);
  return false;
}

// Written by ddprun_worker_handle_stop() before the handler is there.
std::array<struct sigaction, kStopSignals.size()> previous_actions;
std::atomic<pid_t> handles_in{0};
std::atomic<int> caught{0};

/// What the signal would do without us, as soon as the handler returns.
void act_as_before(int signal) {
  const auto* at = std::find(kStopSignals.begin(), kStopSignals.end(), signal);
  ::sigaction(signal, &previous_actions[static_cast<std::size_t>(at - kStopSignals.begin())],
              nullptr);
  ::raise(signal);
}

// Async-signal-safe. ddprun writes the page before it sends the signal.
void on_stop_signal(int signal) {
  const int error = errno;
  const LinkPage* page = known_page();
  const bool leaves_time = page == nullptr ? caught == 0 : page->stop.load() != 0;
  if (!leaves_time) {
    act_as_before(signal);
  } else if (::getpid() == handles_in) {
    caught = signal;
  }
  errno = error;
}

int install() {
  struct sigaction action = {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
    if (::sigaction(kStopSignals[i], nullptr, &previous_actions[i]) != 0) return errno;
    if (previous_actions[i].sa_handler == SIG_IGN) continue;  // nohup
    if (::sigaction(kStopSignals[i], &action, nullptr) != 0) return errno;
  }
  return 0;
}

}  // namespace

int ddprun_worker_handle_stop(void) {
  static_cast<void>(page());  // the handler cannot connect
  pid_t none = 0;
  const pid_t self = ::getpid();
  if (handles_in.compare_exchange_strong(none, self)) return install();
  handles_in = self;  // forked since then, and asks for itself
  return 0;
}

int ddprun_worker_stop_requested(void) {
  const LinkPage* shared = page();
  const int ordered = shared == nullptr ? 0 : shared->stop.load(std::memory_order_relaxed);
  return ordered != 0 ? ordered : caught.load(std::memory_order_relaxed);
}

int ddprun_worker_connected(void) {
  return page() == nullptr || link_has_ended() ? 0 : 1;
}

// The watcher reads the link, if there is one, and tells.
int ddprun_worker_wait_for_stop(int timeout_ms) {
  if (ddprun_worker_stop_requested() != 0) return 1;
  if (page() == nullptr) return -1;
  const std::int64_t deadline = monotonic_now() + std::int64_t{timeout_ms} * kMillisecond;
  while (true) {
    const std::int64_t left = (deadline - monotonic_now() + kMillisecond - 1) / kMillisecond;
    const bool ended = wait_for_change(static_cast<int>(std::clamp<std::int64_t>(left, 0, kSlice)));
    if (ddprun_worker_stop_requested() != 0) return 1;
    if (ended) return -1;
    if (left <= 0) return 0;
  }
}

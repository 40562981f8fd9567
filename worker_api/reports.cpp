// What a worker reports over the link: steps, sections, readiness, checkpoints; and how it learns
// of a stop that leaves it time to save.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
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

constexpr std::int64_t kSlotBits = 8;  // of a section's number; the others are its turn
static_assert(kSectionsMax <= 1 << kSlotBits);

std::uint32_t state_of(std::uint32_t turn) {
  return turn % SectionSlot::kStates;
}

void write_name(SectionSlot& slot, const char* name) {
  const std::size_t length = ::strnlen(name, kSectionNameMax);
  for (std::size_t i = 0; i < slot.name.size(); ++i) {
    std::uint64_t part = 0;
    const std::size_t from = i * sizeof(part);
    if (from < length) ::memcpy(&part, name + from, std::min(sizeof(part), length - from));
    slot.name[i].store(part, std::memory_order_relaxed);
  }
}

/// The turn of a slot that is ours from now on; 0: it is taken.
std::uint32_t claim(SectionSlot& slot) {
  std::uint32_t turn = slot.turn.load();
  if (state_of(turn) != SectionSlot::kFree) return 0;
  const std::uint32_t written = turn + SectionSlot::kWritten;
  return slot.turn.compare_exchange_strong(turn, written) ? written : 0;
}

std::int64_t limit_of(std::int64_t timeout_ms) {
  return std::clamp<std::int64_t>(timeout_ms, 1, INT32_MAX) * kMillisecond;
}

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

int ddprun_worker_step_done(int64_t step) {
  LinkPage* shared = page();
  if (shared == nullptr) return ENOTCONN;
  const std::int64_t now = monotonic_now();
  if (shared->first_step_at.load(std::memory_order_relaxed) == 0) {
    shared->first_step.store(step, std::memory_order_relaxed);
    shared->first_step_at.store(now, std::memory_order_relaxed);
  }
  shared->step_at.store(now, std::memory_order_relaxed);
  shared->step.store(step, std::memory_order_relaxed);
  return 0;
}

int ddprun_worker_ready(void) {
  return send_packet(PacketKind::kReady);
}

int ddprun_worker_checkpoint_written(int64_t step, const char* path) {
  if (path == nullptr || *path == '\0') return EINVAL;
  const std::size_t length = ::strnlen(path, kPathBytesMax + 1);
  if (length > kPathBytesMax) return ENAMETOOLONG;
  std::array<unsigned char, sizeof(step) + kPathBytesMax> content{};
  const auto number = little_endian(static_cast<std::uint64_t>(step));
  std::copy(number.begin(), number.end(), content.begin());
  ::memcpy(content.data() + sizeof(step), path, length);
  return send_packet(PacketKind::kCheckpoint, content.data(), sizeof(step) + length);
}

// The agent stores look_at before it reads the sections, and here look_at is read after the section
// is written: one of the two sees the other.
int64_t ddprun_worker_section_begin(const char* name, int64_t timeout_ms) {
  LinkPage* shared = page();
  if (shared == nullptr || name == nullptr) return -1;
  for (std::size_t i = 0; i < shared->sections.size(); ++i) {
    SectionSlot& slot = shared->sections[i];
    const std::uint32_t written = claim(slot);
    if (written == 0) continue;
    const std::int64_t began = monotonic_now();
    const std::int64_t limit = limit_of(timeout_ms);
    slot.began.store(began, std::memory_order_relaxed);
    slot.limit.store(limit, std::memory_order_relaxed);
    write_name(slot, name);
    const std::uint32_t open = written - SectionSlot::kWritten + SectionSlot::kOpen;
    slot.turn.store(open);
    // Without room there are packets that it has not read: it looks after each.
    if (began + limit < shared->look_at.load()) send_packet(PacketKind::kLook);
    return (static_cast<std::int64_t>(open) << kSlotBits) | static_cast<std::int64_t>(i);
  }
  return -1;
}

void ddprun_worker_section_end(int64_t section) {
  LinkPage* shared = known_page();
  if (shared == nullptr || section < 0) return;
  const auto at = static_cast<std::size_t>(section & ((1 << kSlotBits) - 1));
  if (at >= shared->sections.size()) return;
  auto open = static_cast<std::uint32_t>(section >> kSlotBits);
  if (state_of(open) != SectionSlot::kOpen) return;
  const std::uint32_t next = open - SectionSlot::kOpen + SectionSlot::kStates;
  shared->sections[at].turn.compare_exchange_strong(open, next);
}

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

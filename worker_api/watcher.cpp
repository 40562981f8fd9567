// The thread that waits for rounds. It starts in survive(), so that other programs have none.
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "worker_api/link.hpp"
#include "worker_api/rounds.hpp"
#include "worker_api/sockets.hpp"

namespace ddprun::worker_link {
namespace {

constexpr int kForever = -1;
// While a round is over that the process is still in: a thread may make sockets for it.
constexpr int kAbandonInterval_ms = 10;
// Without a link only this tells of the end of the agent.
constexpr int kAgentInterval_ms = 20;
// The third link in succession that the agent closes.
constexpr std::int64_t kPauseRefused = 4 * kPauseMin;

void set_ended(bool has_ended) {
  Rounds& all = rounds();
  const std::lock_guard lock(all.mutex);
  all.has_ended = has_ended;
  all.changed.notify_all();
}

void tell_of_change() {
  Rounds& all = rounds();
  const std::lock_guard lock(all.mutex);
  all.changed.notify_all();
}

// The callback may need locks that a thread holds which waits for our mutex (Python's).
void receive_round(std::optional<World> world) {
  Rounds& all = rounds();
  std::unique_lock lock(all.mutex);
  if (!world || (all.taken && world->round <= all.taken->round)) return;
  const auto callback = all.callback;
  set_pending_round(world->round);
  lock.unlock();
  abandon_pending();
  if (callback != nullptr) (*callback)(world->round, world->cause);
  lock.lock();
  all.pushed = std::move(world);
  all.changed.notify_all();
}

/// Whether the link continues.
bool receive_packet(std::vector<std::uint8_t>& packet) {
  const ssize_t count = ::recv(link_socket(), packet.data(), packet.size(), MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  const auto size = static_cast<std::size_t>(count);
  if (size < kPacketHeaderBytes || packet[0] != kLinkVersion) return false;
  if (packet[1] == static_cast<std::uint8_t>(PacketKind::kStop)) tell_of_change();
  if (packet[1] == static_cast<std::uint8_t>(PacketKind::kRound)) {
    receive_round(parse_round(packet.data() + kPacketHeaderBytes, size - kPacketHeaderBytes));
  }
  return true;
}

// The agent learns that the process exits before its memory is torn down, which takes long. This
// thread has no robust mutexes, so the list that libc made for those is not missed.
void mark_alive() {
  LinkPage* const shared = known_page();
  if (shared == nullptr) return;
  static robust_list of_page;
  static robust_list_head head;
  shared->alive.store(static_cast<std::uint32_t>(::syscall(SYS_gettid)) | FUTEX_WAITERS);
  of_page.next = &head.list;
  head.list.next = &of_page;
  head.futex_offset = reinterpret_cast<char*>(&shared->alive) - reinterpret_cast<char*>(&of_page);
  head.list_op_pending = nullptr;
  ::syscall(SYS_set_robust_list, &head, sizeof(head));
}

void abandon_new() {
  if (pending_round() != 0 && notes_sockets()) abandon_pending();
}

void read_link(std::vector<std::uint8_t>& packet) {
  bool holds = true;
  while (holds) {
    pollfd link{link_socket(), POLLIN, 0};
    const int ready = ::poll(&link, 1, pending_round() != 0 ? kAbandonInterval_ms : kForever);
    if (ready > 0) holds = receive_packet(packet);
    if (ready == 0) abandon_new();
  }
}

/// Whether there may be an agent to connect to after the pause.
bool wait_for_agent(std::int64_t pause) {
  const std::int64_t due = monotonic_now() + pause;
  while (may_renew_link()) {
    if (monotonic_now() >= due) return true;
    ::poll(nullptr, 0, kAgentInterval_ms);
    abandon_new();
  }
  return false;
}

// An agent closes a link that is one too many.
void* watch(void*) {
  ::pthread_setname_np(::pthread_self(), "ddprun-rounds");
  mark_alive();
  std::vector<std::uint8_t> packet(kRoundPacketBytesMax);
  std::int64_t pause = kPauseMin;
  std::int64_t made_at = monotonic_now();
  while (true) {
    read_link(packet);
    if (monotonic_now() - made_at > pause) pause = kPauseMin;
    if (pause >= kPauseRefused) set_ended(true);  // else who waits for a round may wait for ever
    if (!wait_for_agent(pause)) break;
    pause = std::min(2 * pause, kPauseMax);
    renew_link();
    made_at = monotonic_now();
    set_ended(false);
  }
  set_ended(true);
  return nullptr;
}

// Signals are for the threads of the program.
bool start_thread() {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  pthread_attr_t detached;
  if (::pthread_attr_init(&detached) != 0) return false;
  ::pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const bool started = ::pthread_create(&thread, &detached, watch, nullptr) == 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&detached);
  return started;
}

}  // namespace
}  // namespace ddprun::worker_link

namespace ddprun {

using namespace worker_link;

int survive() {
  // The agent starts all ranks again without it, and pushes no rounds.
  if (::getenv("DDPRUN_SURVIVORS") == nullptr || !is_worker_itself()) return ENOTCONN;
  keep_link();  // before the watcher reads it
  Rounds& all = rounds();
  {
    const std::lock_guard lock(all.mutex);
    if (all.has_ended) return ENOTCONN;
    if (all.is_watched) return 0;
    if (!start_thread()) return EAGAIN;
    all.is_watched = true;
  }
  const int sent = send_packet(PacketKind::kSurvives);     // the link's lock is never taken in ours
  return sent == ENOTCONN && may_renew_link() ? 0 : sent;  // refused, so far
}

}  // namespace ddprun

#include "worker_api/link.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <new>
#include <optional>
#include <string>

namespace ddprun::worker_link {
namespace {

// Of the process. Page and number of the socket are set once, the socket first.
std::atomic<LinkPage*> the_page{nullptr};
std::atomic<int> the_socket{-1};
std::atomic<pid_t> connected_in{0};
// When to connect, or to look whether the link has ended. kNever: there is no ddprun, or the
// watcher looks.
std::atomic<std::int64_t> try_at{0};

/// A program may close it without our knowledge, and its number is then another file's.
struct OwnDescriptor {
  int number = -1;
  dev_t device = 0;
  ino_t inode = 0;
};

// Guarded by connecting().
LinkPage* own_page = nullptr;
OwnDescriptor own_memory;
OwnDescriptor own_socket;
std::int64_t next_pause = kPauseMin;
const std::string* kept_path = nullptr;  // of keep_link(); never destroyed

// Never destroyed: threads may still report while the process exits.
std::mutex& connecting() {
  static std::mutex* const mutex = new std::mutex;
  return *mutex;
}

// A fork while another thread connects would leave the mutex of the new process locked.
void follow_forks() {
  static const int followed = ::pthread_atfork(
      [] { connecting().lock(); }, [] { connecting().unlock(); }, [] { connecting().unlock(); });
  static_cast<void>(followed);
}

std::optional<ucred> peer_of(int socket) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer;
}

// A page tells nothing to another user.
bool is_of_this_user(int socket) {
  const auto peer = peer_of(socket);
  return peer && (peer->uid == ::geteuid() || peer->uid == 0);
}

OwnDescriptor describe(int number) {
  struct stat facts = {};
  if (::fstat(number, &facts) != 0) return {};
  return {number, facts.st_dev, facts.st_ino};
}

bool is_still(const OwnDescriptor& own) {
  const OwnDescriptor now = describe(own.number);
  return now.number >= 0 && now.device == own.device && now.inode == own.inode;
}

int connect_to(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return -1;
  ::memcpy(address.sun_path, path.data(), path.size());
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return -1;
  const bool connected =
      ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      is_of_this_user(socket);
  if (connected) return socket;
  ::close(socket);
  return -1;
}

// The agent maps it only if it cannot be cut.
int make_memory() {
  const int memory = ::memfd_create("ddprun-worker", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory < 0) return -1;
  const bool made = ::ftruncate(memory, static_cast<off_t>(kPageBytes)) == 0 &&
                    ::fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  if (made) return memory;
  ::close(memory);
  return -1;
}

void send_header(int socket, PacketKind kind) {
  const std::array<std::uint8_t, kPacketHeaderBytes> packet{kLinkVersion,
                                                            static_cast<std::uint8_t>(kind)};
  const ssize_t ignored = ::send(socket, packet.data(), packet.size(), MSG_NOSIGNAL);
  static_cast<void>(ignored);
}

void send_hello(int socket, int memory) {
  std::array<std::uint8_t, kPacketHeaderBytes> hello{kLinkVersion,
                                                     static_cast<std::uint8_t>(PacketKind::kHello)};
  iovec content{hello.data(), hello.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message = {};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* descriptor = CMSG_FIRSTHDR(&message);
  descriptor->cmsg_level = SOL_SOCKET;
  descriptor->cmsg_type = SCM_RIGHTS;
  descriptor->cmsg_len = CMSG_LEN(sizeof(int));
  ::memcpy(CMSG_DATA(descriptor), &memory, sizeof(memory));
  const ssize_t ignored = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  static_cast<void>(ignored);
}

/// Once: other threads write to it from then on, whatever becomes of the link.
bool make_page() {
  if (own_page != nullptr) return true;
  const int memory = make_memory();
  if (memory < 0) return false;
  void* const mapped = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (mapped == MAP_FAILED) {
    ::close(memory);
    return false;
  }
  own_page = new (mapped) LinkPage;
  own_memory = describe(memory);
  return true;
}

/// In the place of a link that has ended: other threads may be about to use its number. -1: not.
int take_place(int socket) {
  if (own_socket.number < 0) return socket;
  const int placed = ::dup3(socket, own_socket.number, O_CLOEXEC);
  ::close(socket);
  return placed;
}

// One that is refused meanwhile is a link that has ended.
void connect_page(const std::string& path, bool survives) {
  int socket = connect_to(path);
  if (socket < 0) return;
  next_pause = std::min(2 * next_pause, kPauseMax);  // until it holds
  if (!make_page()) {
    ::close(socket);
    return;
  }
  send_hello(socket, own_memory.number);
  if (survives) send_header(socket, PacketKind::kSurvives);
  socket = take_place(socket);
  if (socket < 0) return;
  own_socket = describe(socket);
  the_socket = socket;
  connected_in = ::getpid();
  the_page.store(own_page, std::memory_order_release);
}

bool is_due() {
  const std::int64_t next = try_at.load(std::memory_order_acquire);
  return next != kNever && monotonic_now() >= next;
}

bool are_still_ours() {
  return (own_socket.number < 0 || is_still(own_socket)) &&
         (own_page == nullptr || is_still(own_memory));
}

/// Whether there may be an agent, now or later.
bool connect_to_agent() {
  const char* path = ::getenv(kSocketVariable);
  if (path == nullptr || *path == '\0' || !are_still_ours()) return false;
  connect_page(path, false);
  return true;
}

// An agent closes a link that is one too many.
void look_at_link() {
  follow_forks();
  std::unique_lock lock(connecting(), std::defer_lock);
  if (known_page() == nullptr) {
    lock.lock();
  } else if (!lock.try_lock()) {
    return;  // another thread looks
  }
  if (!is_due()) return;
  const bool holds = known_page() != nullptr && !link_has_ended();
  if (holds) next_pause = kPauseMin;
  const std::int64_t next = monotonic_now() + next_pause;
  const bool again = holds || connect_to_agent();
  // Not before: the first call of another thread waits for the page.
  try_at = again ? next : kNever;
}

}  // namespace

std::int64_t monotonic_now() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1000 * kMillisecond + now.tv_nsec;
}

LinkPage* known_page() {
  return the_page.load(std::memory_order_acquire);
}

LinkPage* page() {
  if (is_due()) {
    const int before = errno;
    look_at_link();
    errno = before;
  }
  return known_page();
}

int link_socket() {
  return known_page() == nullptr ? -1 : the_socket.load();
}

bool link_has_ended() {
  pollfd link{the_socket, POLLIN, 0};
  return ::poll(&link, 1, 0) > 0 && (link.revents & (POLLHUP | POLLERR)) != 0;
}

void keep_link() {
  const std::lock_guard lock(connecting());
  const char* path = ::getenv(kSocketVariable);
  if (kept_path == nullptr && path != nullptr) kept_path = new std::string(path);
  try_at = kNever;
}

bool may_renew_link() {
  if (!is_worker_itself()) return false;
  const std::lock_guard lock(connecting());
  return kept_path != nullptr && are_still_ours() && ::access(kept_path->c_str(), F_OK) == 0;
}

void renew_link() {
  const std::lock_guard lock(connecting());
  connect_page(*kept_path, true);
}

// The agent is the parent of its workers.
bool is_worker_itself() {
  if (page() == nullptr || connected_in != ::getpid()) return false;
  const auto agent = peer_of(the_socket);
  return agent && agent->pid == ::getppid();
}

int send_packet(PacketKind kind, const void* content, std::size_t size) {
  if (page() == nullptr) return ENOTCONN;
  std::array<std::uint8_t, kPacketBytesMax> packet{};
  packet[0] = kLinkVersion;
  packet[1] = static_cast<std::uint8_t>(kind);
  const std::size_t room = packet.size() - kPacketHeaderBytes;
  if (size > 0) ::memcpy(packet.data() + kPacketHeaderBytes, content, std::min(size, room));
  const int before = errno;
  const ssize_t sent = ::send(the_socket, packet.data(), kPacketHeaderBytes + std::min(size, room),
                              MSG_NOSIGNAL | MSG_DONTWAIT);
  const int failed = sent >= 0 ? 0 : errno == EAGAIN ? EAGAIN : ENOTCONN;
  errno = before;
  return failed;
}

}  // namespace ddprun::worker_link

#include "worker_api/sockets.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <set>

#include "worker_api/gloo_waits.hpp"
#include "worker_api/rounds.hpp"
#include "worker_api/worker.hpp"

namespace ddprun::worker_link {
namespace {

struct Noted {
  std::mutex mutex{};
  bool notes = false;
  std::set<ino_t> before{};  // at begin
  std::set<ino_t> made{};    // between begin and end
};

Noted* make_noted();

// Never destroyed: see rounds().
Noted& noted() {
  static Noted* const all = make_noted();
  return *all;
}

Noted* make_noted() {
  allow_waits();  // before a fork its mutex is locked after ours, so its handlers come first here
  ::pthread_atfork([] { noted().mutex.lock(); }, [] { noted().mutex.unlock(); },
                   [] { noted().mutex.unlock(); });
  return new Noted;
}

bool has(int socket, int option, int value) {
  int found = 0;
  socklen_t size = sizeof(found);
  return ::getsockopt(socket, SOL_SOCKET, option, &found, &size) == 0 && found == value;
}

bool is_tcp(int socket) {
  const bool internet = has(socket, SO_DOMAIN, AF_INET) || has(socket, SO_DOMAIN, AF_INET6);
  return internet && has(socket, SO_TYPE, SOCK_STREAM) && !has(socket, SO_ACCEPTCONN, 1);
}

/// 0: none that could be a group's.
ino_t inode_of(int descriptor) {
  struct stat facts = {};
  if (::fstat(descriptor, &facts) != 0 || !S_ISSOCK(facts.st_mode)) return 0;
  return is_tcp(descriptor) ? facts.st_ino : 0;
}

template <class Visit>
void for_each_socket(Visit visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir("/proc/self/fd"), ::closedir);
  if (opened == nullptr) return;
  while (const dirent* item = ::readdir(opened.get())) {
    const int descriptor = ::atoi(item->d_name);
    const ino_t inode = item->d_name[0] == '.' ? 0 : inode_of(descriptor);
    if (inode != 0) visit(descriptor, inode);
  }
}

std::set<ino_t> present() {
  std::set<ino_t> inodes;
  for_each_socket([&](int, ino_t inode) { inodes.insert(inode); });
  return inodes;
}

/// The number may be another file's since it was looked at, so the socket is held first.
bool shut(int descriptor, ino_t inode) {
  const int held = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (held < 0) return false;
  const bool shut = inode_of(held) == inode && ::shutdown(held, SHUT_RDWR) == 0;
  ::close(held);
  return shut;
}

int shut_noted(const Noted& all) {
  int count = 0;
  for_each_socket([&](int descriptor, ino_t inode) {
    const bool is_new = all.notes && all.before.count(inode) == 0;
    if (is_new || all.made.count(inode) > 0) count += shut(descriptor, inode) ? 1 : 0;
  });
  fail_waits();
  return count;
}

}  // namespace

bool notes_sockets() {
  Noted& all = noted();
  const std::lock_guard lock(all.mutex);
  return all.notes;
}

// A round is taken before the sockets of the next group are noted: here none of those is shut.
void abandon_pending() {
  Noted& all = noted();
  const std::lock_guard lock(all.mutex);
  if (pending_round() != 0) static_cast<void>(shut_noted(all));
}

}  // namespace ddprun::worker_link

namespace ddprun {

void sockets_begin() {
  auto& all = worker_link::noted();
  const std::lock_guard lock(all.mutex);
  all.before = worker_link::present();
  all.made.clear();
  all.notes = true;
  if (worker_link::pending_round() == 0) worker_link::allow_waits();
  worker_link::follow_waits();
}

int sockets_end() {
  auto& all = worker_link::noted();
  const std::lock_guard lock(all.mutex);
  if (!all.notes) return 0;
  all.notes = false;
  worker_link::follow_waits();
  for (const ino_t inode : worker_link::present()) {
    if (all.before.count(inode) == 0) all.made.insert(inode);
  }
  if (worker_link::pending_round() != 0) static_cast<void>(worker_link::shut_noted(all));
  return static_cast<int>(all.made.size());
}

int abandon_sockets() {
  auto& all = worker_link::noted();
  const std::lock_guard lock(all.mutex);
  return worker_link::shut_noted(all);
}

}  // namespace ddprun

#include "launcher/front/sweep.hpp"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "base/newest_pid.hpp"

namespace ddprun::front {

namespace {

constexpr std::chrono::milliseconds kPassInterval{10};

std::chrono::nanoseconds since_boot() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

void wait_for_an_end() {
  sigset_t ended;
  ::sigemptyset(&ended);
  ::sigaddset(&ended, SIGCHLD);
  constexpr timespec kLimit{0, std::chrono::nanoseconds(kPassInterval).count()};
  ::sigtimedwait(&ended, nullptr, &kLimit);
}

// Returns how many are alive. Groups of this process's own session may hold strangers; every other
// session was begun by something below, so that its groups hold nothing else.
int kill_below(const ProcessTree& tree, Swept& swept) {
  const pid_t session = ::getsid(0);
  int alive = 0;
  for (const ProcessSeen& seen : tree) {
    if (!seen.below) continue;
    if (!seen.ended()) {
      if (static_cast<std::size_t>(alive) < swept.named.size()) {
        swept.named[static_cast<std::size_t>(alive)] = seen;
      }
      ++alive;
    }
    if (seen.session != session && seen.session > 0 && seen.group > 1) {
      ::kill(-seen.group, SIGKILL);
    }
    ::kill(seen.pid, SIGKILL);
  }
  return alive;
}

// Children that are forked, or come here, faster than pictures are taken.
void kill_new_children(NewPids& forked, const Spared& spared) {
  const pid_t self = ::getpid();
  const pid_t session = ::getsid(0);
  pid_t last = 0;
  forked.follow([&](pid_t pid) {
    ProcessSeen seen;
    if (!read_process(pid, seen) || seen.parent != self || spared.covers(seen, session)) {
      return false;
    }
    ::kill(pid, SIGKILL);
    return std::exchange(last, pid) != pid;
  });
}

int count_below(const ProcessTree& tree) {
  int count = 0;
  for (const ProcessSeen& seen : tree) count += seen.below ? 1 : 0;
  return count;
}

/// Reaps children that have ended. False when there is no child at all.
bool reap_ended(Swept& swept, bool after_kill) {
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, WNOHANG | __WALL);
    if (ended == 0) return true;
    if (ended < 0 && errno != EINTR) return false;
    if (ended < 0) continue;
    ++swept.ended;
    if (after_kill && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ++swept.killed;
  }
}

}  // namespace

Swept sweep(const Spared& spared, std::chrono::milliseconds limit) {
  Swept swept;
  ProcessTree tree;
  const auto deadline = since_boot() + limit;
  bool after_kill = false;
  while (reap_ended(swept, after_kill)) {
    NewPids forked;
    const bool seen = tree.read(spared);
    if (seen && count_below(tree) == 0) break;
    const int alive = seen ? kill_below(tree, swept) : 0;
    kill_new_children(forked, spared);
    after_kill = true;
    if (since_boot() > deadline) {
      swept.left = alive;
      break;
    }
    wait_for_an_end();
  }
  return swept;
}

}  // namespace ddprun::front

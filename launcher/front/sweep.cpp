#include "launcher/front/sweep.hpp"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "base/newest_pid.hpp"
#include "base/pipe_end.hpp"

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

enum class Killed { kButPipeEnds, kAll };

// Returns how many are alive. Groups of this process's own session may hold strangers; every other
// session was begun by something below, so that its groups hold nothing else.
int kill_below(const ProcessTree& tree, Swept& swept, Killed killed) {
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
    if (killed == Killed::kButPipeEnds) {
      if (!ends_with_its_pipe(seen.pid, seen.parent)) ::kill(seen.pid, SIGKILL);
      continue;
    }
    if (seen.session != session && seen.session > 0 && seen.group > 1) {
      ::kill(-seen.group, SIGKILL);
    }
    ::kill(seen.pid, SIGKILL);
  }
  return alive;
}

// Children that are forked, or come here, faster than pictures are taken.
void kill_new_children(NewPids& forked, const Spared& spared, Killed killed) {
  const pid_t self = ::getpid();
  const pid_t session = ::getsid(0);
  pid_t last = 0;
  forked.follow([&](pid_t pid) {
    ProcessSeen seen;
    if (!read_process(pid, seen) || seen.parent != self || spared.covers(seen, session)) {
      return false;
    }
    const bool is_spared = killed == Killed::kButPipeEnds && ends_with_its_pipe(pid, self);
    if (!is_spared) ::kill(pid, SIGKILL);
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

Swept sweep(const Spared& spared, std::chrono::milliseconds limit,
            std::span<const Cgroup> cgroups) {
  Swept swept;
  ProcessTree tree;
  const auto deadline = since_boot() + limit;
  const auto pipe_ends_until = since_boot() + kPipeEndWait;
  Killed killed = Killed::kButPipeEnds;
  bool after_kill = false;
  while (reap_ended(swept, after_kill)) {
    NewPids forked;
    const bool seen = tree.read(spared);
    const bool none = seen && count_below(tree) == 0;
    if (none && killed == Killed::kAll) break;
    // What forks faster than pictures are taken is not seen, and does not escape this.
    if (killed == Killed::kButPipeEnds && (none || since_boot() >= pipe_ends_until)) {
      killed = Killed::kAll;
      for (const Cgroup& cgroup : cgroups) cgroup.kill();
    }
    const int alive = seen ? kill_below(tree, swept, killed) : 0;
    kill_new_children(forked, spared, killed);
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

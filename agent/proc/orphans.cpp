#include "agent/proc/orphans.hpp"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "agent/proc/process_table.hpp"
#include "base/process_setup.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

std::optional<std::vector<pid_t>> children_by_pass() {
  std::vector<pid_t> children;
  const bool complete = for_each_process([&](const ProcessEntry& process) {
    if (process.parent == ::getpid()) children.push_back(process.pid);
  });
  if (!complete) return std::nullopt;
  return children;
}

}  // namespace

Orphans::Orphans(asio::any_io_executor executor)
    : ended_(executor), news_(executor, asio::steady_timer::time_point::max()) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void Orphans::no_longer_except(pid_t child) {
  const bool standing = standing_.erase(child) != 0;
  own_.erase(child);
  reap_ended();  // those that its zombie hid
  if (!standing && own_.empty()) wake();
}

asio::awaitable<void> Orphans::reap() {
  ended_.add(SIGCHLD);
  unblock_signals({SIGCHLD});
  boost::system::error_code why;
  while (!why) {
    reap_ended();  // before the first signal too: an earlier program may have left some
    co_await ended_.async_wait(asio::redirect_error(asio::use_awaitable, why));
  }
}

// Looks before it takes, because the statuses of workers are collected elsewhere. A worker's zombie
// hides the others until that has happened.
void Orphans::reap_ended() const {
  while (true) {
    siginfo_t ended = {};
    if (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0) return;
    if (is_excepted(ended.si_pid)) return;
    siginfo_t ignored = {};
    ::waitid(P_PID, static_cast<id_t>(ended.si_pid), &ignored, WEXITED | WNOHANG);
    if (ignored.si_pid == 0) return;  // a process that we trace has stopped
  }
}

Orphans::Any Orphans::any() {
  reap_ended();
  siginfo_t ignored = {};
  const bool childless = ::waitid(P_ALL, 0, &ignored, WEXITED | WNOHANG | WNOWAIT) != 0;
  if (childless && errno == ECHILD) return Any::kNo;
  if (own_.empty() && standing_.empty()) return Any::kYes;
  auto children = children_of_this_process();
  if (!children && own_.empty()) children = children_by_pass();
  if (!children) return Any::kUnknown;
  const bool orphan = std::any_of(children->begin(), children->end(),
                                  [this](pid_t child) { return !is_excepted(child); });
  return orphan ? Any::kYes : Any::kNo;
}

asio::awaitable<void> Orphans::wait_for_news() {
  boost::system::error_code cancelled;
  co_await news_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
}

}  // namespace ddprun

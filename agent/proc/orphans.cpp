#include "agent/proc/orphans.hpp"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/process_setup.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

std::optional<std::vector<pid_t>> own_children_by_pass() {
  std::vector<pid_t> children;
  bool any = false;  // another file system may be mounted there
  const bool complete = for_each_process([&](const ProcessEntry& process) {
    any = true;
    if (process.parent == ::getpid()) children.push_back(process.pid);
  });
  if (!complete || !any) return std::nullopt;
  return children;
}

bool is_childless() {
  siginfo_t ignored = {};
  const int result = ::waitid(P_ALL, 0, &ignored, WEXITED | WNOHANG | WNOWAIT);
  return result != 0 && errno == ECHILD;
}

// Where no descriptor is left.
ProcessEntry facts_without_proc(pid_t child) {
  ProcessEntry process;
  process.pid = child;
  process.parent = ::getpid();
  process.group = ::getpgid(child);
  process.session = ::getsid(child);
  return process;
}

}  // namespace

Orphans::Orphans(asio::any_io_executor executor)
    : executor_(executor),
      children_(open_children_of_this_process()),
      ended_(executor),
      news_(executor, asio::steady_timer::time_point::max()) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Orphans::~Orphans() {
  if (children_ >= 0) ::close(children_);
}

void Orphans::no_longer_except(pid_t child) {
  const bool standing = standing_.erase(child) != 0;
  own_.erase(child);
  looked_.reset();
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
// hides the others: behind it the known ones are asked one by one, and look() finds the rest.
void Orphans::reap_ended() {
  const std::size_t before = left_.size();
  siginfo_t ended = {};
  while (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0) {
    // Not if it is a process that we trace, which has stopped.
    if (is_excepted(ended.si_pid) || !reap_if_ended(ended.si_pid)) break;
    ended = {};
  }
  if (ended.si_pid != 0) {
    std::vector<pid_t> known;
    for (const auto& [number, process] : left_) known.push_back(process.pid);
    for (const pid_t child : known) static_cast<void>(reap_if_ended(child));
  }
  if (left_.size() != before) wake();
}

bool Orphans::reap_if_ended(pid_t child) {
  siginfo_t ended = {};
  const bool reaped = ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG) == 0 &&
                      ended.si_pid != 0;
  if (reaped) forget(child);
  return reaped;
}

void Orphans::forget(pid_t child) {
  const auto known = numbers_.find(child);
  looked_.reset();
  if (known == numbers_.end()) return;
  left_.erase(known->second);
  marks_.erase(known->second);
  numbers_.erase(known);
}

// What other workers of this turn have asked for need not be read again. What has ended may have
// left others.
Orphans::Seen Orphans::look(Pass pass) {
  if (is_childless()) return Seen::kAll;
  if (children_ < 0 && pass != Pass::kAlways && !own_.empty()) return Seen::kUnknown;
  begin_share();
  if (!looked_) looked_ = find_new();
  return *looked_;
}

Orphans::Seen Orphans::find_new() {
  const auto children = children_ < 0 ? own_children_by_pass() : read_children(children_);
  if (!children) return Seen::kNoProc;
  for (const pid_t child : *children) {
    if (!is_excepted(child) && !take(child)) return Seen::kPart;
  }
  return Seen::kAll;
}

// False: the share of this turn is used up.
bool Orphans::take(pid_t child) {
  if (numbers_.count(child) != 0 || reap_if_ended(child)) return true;
  if (!spend()) return false;
  const Number number = ++last_number_;
  numbers_.emplace(child, number);
  left_.emplace(number, find_process(child).value_or(facts_without_proc(child)));
  return true;
}

bool Orphans::spend() {
  begin_share();
  if (spent_ > kOrphansPerTurn) return false;
  return ++spent_ <= kOrphansPerTurn;
}

void Orphans::begin_share() {
  if (!std::exchange(sharing_, true)) asio::post(executor_, [this] { end_share(); });
}

void Orphans::end_share() {
  sharing_ = false;
  looked_.reset();
  if (std::exchange(spent_, 0) > kOrphansPerTurn) wake();
}

const std::string& Orphans::mark_of(Number orphan) {
  std::string& mark = marks_[orphan];
  if (mark.empty()) mark = environment_of(left_.at(orphan).pid, "DDPRUN_WORKER");
  return mark;
}

asio::awaitable<void> Orphans::wait_for_news() {
  boost::system::error_code cancelled;
  co_await news_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
}

}  // namespace ddprun

#include "agent/proc/descendants.hpp"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <set>
#include <utility>

#include "agent/proc/limits.hpp"
#include "base/newest_pid.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

bool has_ended(int pidfd) {
  pollfd ended = {pidfd, POLLIN, 0};
  return ::poll(&ended, 1, 0) != 0;
}

/// The part of a worker's mark that all workers of one run of ddprun share.
std::string run_of(const std::string& mark) {
  return mark.substr(0, mark.find('/') + 1);
}

}  // namespace

Descendants::Descendants(asio::any_io_executor executor, Orphans& orphans, EndedWorker worker)
    : executor_(std::move(executor)), orphans_(orphans), worker_(std::move(worker)) {}

bool Descendants::look(Others others) {
  const Orphans::Any any = orphans_.any();
  const bool in_leaf = worker_.leaf && worker_.leaf->populated();
  unknown_ = any == Orphans::Any::kUnknown && !in_leaf && others == Others::kEnd;
  if (any == Orphans::Any::kNo && !in_leaf) members_.clear();
  if (any == Orphans::Any::kNo && !in_leaf) return false;
  return unknown_ || search();
}

bool Descendants::search() {
  const bool first = !std::exchange(looked_, true);
  unknown_ = false;
  for (int pass = 0; pass < kPassesMax; ++pass) {
    forget_ended();
    if (worker_.last_signal == SIGKILL) kill_all();
    const auto found = find();
    if (!found || !watch_all(*found, first)) break;
    // What was seen may have ended by now, having forked: then there is more to see.
    if (found->empty() || !members_.empty()) return !members_.empty();
  }
  if (first) ::kill(-worker_.pid, SIGKILL);  // needs no descriptor; the number is still its
  members_.clear();
  kill_all();
  return false;
}

// A process that was in the worker's group when a signal came has had it.
bool Descendants::watch_all(const Processes& found, bool first) {
  for (const ProcessEntry& process : found) {
    if (is_watched(process) || members_.size() >= kDescendantsWatchedMax) continue;
    const std::size_t before = members_.size();
    if (!watch(process)) return false;
    const bool informed = first && process.group == worker_.pid;
    if (members_.size() > before && !informed) send(*members_.back(), worker_.last_signal);
  }
  return true;
}

// A process may have left the leaf (`systemd-run --scope`, `cgexec`): it is found by descent.
std::optional<Descendants::Processes> Descendants::find() const {
  if (!worker_.leaf) return find_outside();
  auto living = find_in_leaf(*worker_.leaf);
  if (!living || orphans_.any() == Orphans::Any::kNo) return living;
  auto outside = find_outside();
  if (!outside) return std::nullopt;
  const std::size_t inside = living->size();
  for (ProcessEntry& process : *outside) {
    const auto end = living->begin() + static_cast<std::ptrdiff_t>(inside);
    const bool known = std::any_of(
        living->begin(), end, [&](const ProcessEntry& other) { return other.pid == process.pid; });
    if (!known) living->push_back(std::move(process));
  }
  return living;
}

std::optional<Descendants::Processes> Descendants::find_outside() const {
  // Where only zombies are seen, one of them may have forked a process that was not met.
  std::optional<Seen> seen = Seen();
  for (int pass = 0; pass < kPassesMax; ++pass) {
    seen = find_by_descent(0);
    const bool only_zombies = seen && seen->living.empty() && seen->any_ended;
    if (!only_zombies || orphans_.any() == Orphans::Any::kNo) break;
  }
  if (!seen) return std::nullopt;
  return std::move(seen->living);
}

std::optional<Descendants::Processes> Descendants::find_in_leaf(const Cgroup& leaf) const {
  Processes living;
  for (int pass = 0; pass < kPassesMax; ++pass) {
    if (!leaf.populated()) return living;
    for (const pid_t pid : leaf.members()) {
      const auto process = find_process(pid);
      if (process && !process->ended) living.push_back(*process);
    }
    if (!living.empty()) return living;
  }
  return std::nullopt;  // it forks faster than we look, or no descriptor is left
}

std::optional<Descendants::Seen> Descendants::find_by_descent(int signal_on_sight) const {
  const pid_t self = ::getpid();
  Processes all;
  std::set<pid_t> ours;
  const auto take = [&](const ProcessEntry& process) {
    const bool orphan = process.parent == self && !orphans_.is_excepted(process.pid);
    const bool is_ours = orphan ? has_left(process) : ours.count(process.parent) != 0;
    if (!is_ours || !ours.insert(process.pid).second) return false;
    // It is our child, or was below one of ours a moment ago: its pid is its own.
    if (signal_on_sight != 0 && !process.ended) ::kill(process.pid, signal_on_sight);
    return true;
  };
  const auto visit = [&](const ProcessEntry& process) {
    const bool taken = take(process);
    all.push_back(process);
    return taken;
  };
  NewPids forked;
  if (!for_each_process(visit)) return std::nullopt;
  if (signal_on_sight != 0) {
    forked.follow([&](pid_t pid) {
      const auto process = find_process(pid);
      return process && visit(*process);
    });
  }
  // Where pids have started again at a low number, a child stands before its parent.
  for (bool more = true; more;) {
    more = false;
    for (const ProcessEntry& process : all) more = take(process) || more;
  }
  Seen seen;
  for (ProcessEntry& process : all) {
    if (ours.count(process.pid) == 0) continue;
    if (process.ended) seen.any_ended = true;
    if (!process.ended) seen.living.push_back(std::move(process));
  }
  return seen;
}

bool Descendants::has_left(const ProcessEntry& orphan) const {
  const std::string mark = environment_of(orphan.pid, "DDPRUN_WORKER");
  const bool of_this_run = !worker_.mark.empty() && mark.find(run_of(worker_.mark)) != mark.npos;
  if (of_this_run) return (mark + ",").find(worker_.mark + ",") != mark.npos;
  if (orphan.session == worker_.pid || orphan.group == worker_.pid) return true;
  return orphans_.no_child_excepted();
}

bool Descendants::is_watched(const ProcessEntry& process) const {
  return std::any_of(members_.begin(), members_.end(), [&](const auto& member) {
    return member->process.pid == process.pid && member->process.started == process.started;
  });
}

// False only when it is there and cannot be watched.
bool Descendants::watch(const ProcessEntry& process) {
  const auto pidfd = static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0));
  if (pidfd < 0) return errno == ESRCH || errno == EINVAL;
  const auto now = find_process(process.pid);
  const bool starved = !now && (errno == EMFILE || errno == ENFILE);
  if (starved) ::close(pidfd);
  if (starved) return false;
  if (!now || now->started != process.started) {  // it has ended, and its number may be another's
    ::close(pidfd);
    return true;
  }
  auto member =
      std::make_unique<Member>(Member{asio::posix::stream_descriptor(executor_), process});
  boost::system::error_code why;
  member->end.assign(pidfd, why);
  if (why) {
    ::close(pidfd);
    return false;
  }
  members_.push_back(std::move(member));
  return true;
}

void Descendants::forget_ended() {
  const auto ended = [](const auto& member) { return has_ended(member->end.native_handle()); };
  members_.erase(std::remove_if(members_.begin(), members_.end(), ended), members_.end());
}

asio::awaitable<void> Descendants::wait_until_gone() {
  boost::system::error_code why;
  while (unknown_ || !members_.empty()) {
    if (unknown_) {
      co_await orphans_.wait_for_news();
      if (unknown_) static_cast<void>(look());
      continue;
    }
    for (std::size_t at = 0; at < members_.size(); ++at) {
      // An error: signal() found that this one has ended.
      co_await members_[at]->end.async_wait(asio::posix::stream_descriptor::wait_read,
                                            asio::redirect_error(asio::use_awaitable, why));
    }
    search();  // they may have forked
  }
}

// First by cgroup and group: that is atomic, a fork cannot escape it. Then what has left both,
// until a pass sees nothing that lives. A pass follows what is forked while it runs, and it kills
// faster than a program can fork.
void Descendants::kill_all() {
  if (worker_.leaf) {
    for (const ProcessEntry& process : find_in_leaf(*worker_.leaf).value_or(Processes())) {
      count(process);
    }
    worker_.leaf->kill();
    if (orphans_.any() == Orphans::Any::kNo) return;
  }
  for (const auto& member : members_) {
    const ProcessEntry& process = member->process;
    const bool lives = !has_ended(member->end.native_handle());
    if (lives && process.group > 1 && ::getpgid(process.pid) == process.group) {
      ::kill(-process.group, SIGKILL);
    }
  }
  std::set<pid_t> seen;
  for (int pass = 0; pass < kPassesMax; ++pass) {
    const auto found = find_by_descent(SIGKILL);
    if (!found) return;
    const std::size_t before = seen.size();
    for (const ProcessEntry& process : found->living) {
      seen.insert(process.pid);
      count(process);
    }
    if (seen.size() == before) return;
  }
}

void Descendants::send(Member& member, int signal_number) {
  if (signal_number == 0) return;
  count(member.process);
  const int pidfd = member.end.native_handle();
  ::syscall(SYS_pidfd_send_signal, pidfd, signal_number, nullptr, 0);
  // A stopped process takes a signal when it continues.
  const auto now = find_process(member.process.pid);
  if (now && now->state == 'T') ::syscall(SYS_pidfd_send_signal, pidfd, SIGCONT, nullptr, 0);
}

void Descendants::signal(int signal_number) {
  worker_.last_signal = signal_number == SIGKILL ? SIGKILL : 0;  // each of them gets it once, below
  const bool left = search();
  worker_.last_signal = signal_number;
  if (left && signal_number != SIGKILL) {
    for (const auto& member : members_) send(*member, signal_number);
  }
  orphans_.wake();
}

Descendants::Held Descendants::held() const {
  Held held;
  for (const auto& member : members_) {
    ++held.processes;
    held.resident_bytes += member->process.resident_bytes;
  }
  return held;
}

Descendants::Processes Descendants::living() const {
  Processes processes = find().value_or(Processes());
  // Pids start again at a low number when the highest is reached, so they tell no order.
  std::stable_sort(processes.begin(), processes.end(),
                   [](const auto& one, const auto& other) { return one.started < other.started; });
  return processes;
}

}  // namespace ddprun

#include "agent/proc/process_group.hpp"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "agent/proc/limits.hpp"
#include "agent/proc/process_table.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

// A pass over /proc misses processes that fork and exit meanwhile, and sees only their zombies.
// More passes than this cost more than they find where zombies are not reaped.
constexpr int kPassesMax = 30;

/// Those of the group that live; none when its number belongs to another group by now.
std::optional<std::vector<ProcessEntry>> living_members(pid_t id) {
  std::vector<ProcessEntry> members;
  for (int pass = 0; pass < kPassesMax && members.empty(); ++pass) {
    if (::kill(-id, 0) != 0 && errno == ESRCH) break;
    auto all = list_processes();
    if (!all) return std::nullopt;
    for (ProcessEntry& entry : *all) {
      if (entry.pid == id) return std::vector<ProcessEntry>();
      if (entry.group == id && !entry.ended) members.push_back(std::move(entry));
    }
  }
  return members;
}

}  // namespace

ProcessGroup::ProcessGroup(asio::any_io_executor executor, pid_t id)
    : executor_(std::move(executor)), id_(id) {}

bool ProcessGroup::look() {
  members_.clear();
  const auto members = living_members(id_);
  bool watched = members.has_value();
  for (std::size_t at = 0; watched && at < members->size(); ++at) {
    if (members_.size() < kGroupMembersWatchedMax) watched = watch((*members)[at].pid);
  }
  if (!watched) {
    ::kill(-id_, SIGKILL);
    members_.clear();
    return false;
  }
  if (last_signal_ != 0) signal(last_signal_);
  return !members_.empty();
}

// False only when it is there and cannot be watched.
bool ProcessGroup::watch(pid_t member) {
  const auto pidfd = static_cast<int>(::syscall(SYS_pidfd_open, member, 0));
  if (pidfd < 0) return errno == ESRCH || errno == EINVAL;
  if (::getpgid(member) != id_) {  // it ended between look and open, and its number is another's
    ::close(pidfd);
    return true;
  }
  Pidfd watched(executor_);
  boost::system::error_code why;
  watched.assign(pidfd, why);
  if (why) {
    ::close(pidfd);
    return false;
  }
  members_.push_back({std::move(watched), member});
  return true;
}

asio::awaitable<void> ProcessGroup::wait_until_empty() {
  boost::system::error_code why;
  bool more = true;
  while (more) {
    for (std::size_t at = 0; at < members_.size(); ++at) {
      // An error: signal() found that this one has left the group.
      co_await members_[at].end.async_wait(Pidfd::wait_read,
                                           asio::redirect_error(asio::use_awaitable, why));
    }
    more = look();  // they may have forked
  }
}

// A member that called setsid() lives, but holds the number no longer.
bool ProcessGroup::any_alive() {
  return std::any_of(members_.begin(), members_.end(), [this](Member& member) {
    pollfd ended = {member.end.native_handle(), POLLIN, 0};
    return member.end.is_open() && ::getpgid(member.pid) == id_ && ::poll(&ended, 1, 0) == 0;
  });
}

void ProcessGroup::signal(int signal_number) {
  last_signal_ = signal_number;
  if (any_alive()) ::kill(-id_, signal_number);
  boost::system::error_code ignored;  // of a pidfd that is not needed any more
  for (Member& member : members_) {
    if (::getpgid(member.pid) != id_) member.end.close(ignored);
  }
}

std::vector<std::string> ProcessGroup::names() const {
  std::vector<std::string> names;
  const auto members = living_members(id_);
  if (!members) return names;
  // Pids start again at a low number when the highest is reached, so they tell no order.
  std::vector<ProcessEntry> oldest_first = *members;
  std::stable_sort(oldest_first.begin(), oldest_first.end(),
                   [](const auto& one, const auto& other) { return one.started < other.started; });
  for (const ProcessEntry& member : oldest_first) names.push_back(member.name);
  return names;
}

}  // namespace ddprun

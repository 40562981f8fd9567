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

/// Those of the group that live; none when its number belongs to another group by now.
std::optional<std::vector<ProcessEntry>> living_members(pid_t id) {
  auto all = list_processes();
  if (!all) return std::nullopt;
  std::vector<ProcessEntry> members;
  for (ProcessEntry& entry : *all) {
    if (entry.pid == id) return std::vector<ProcessEntry>();
    if (entry.group == id && !entry.ended) members.push_back(std::move(entry));
  }
  return members;
}

}  // namespace

ProcessGroup::ProcessGroup(asio::any_io_executor executor, pid_t id)
    : executor_(std::move(executor)), id_(id) {}

bool ProcessGroup::look() {
  members_.clear();
  if (::kill(-id_, 0) != 0 && errno == ESRCH) return false;
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
  members_.push_back(std::move(watched));
  return true;
}

asio::awaitable<void> ProcessGroup::wait_until_empty() {
  boost::system::error_code why;
  bool more = true;
  while (more) {
    for (std::size_t at = 0; at < members_.size(); ++at) {
      co_await members_[at].async_wait(Pidfd::wait_read,
                                       asio::redirect_error(asio::use_awaitable, why));
      if (why) co_return;
    }
    more = look();  // they may have forked
  }
}

bool ProcessGroup::any_alive() {
  return std::any_of(members_.begin(), members_.end(), [](Pidfd& member) {
    pollfd ended = {member.native_handle(), POLLIN, 0};
    return ::poll(&ended, 1, 0) == 0;
  });
}

void ProcessGroup::signal(int signal_number) {
  last_signal_ = signal_number;
  if (any_alive()) ::kill(-id_, signal_number);
}

std::vector<std::string> ProcessGroup::names() const {
  std::vector<std::string> names;
  const auto members = living_members(id_);
  if (!members) return names;
  for (const ProcessEntry& member : *members) names.push_back(member.name);
  return names;
}

}  // namespace ddprun

#include "agent/proc/child.hpp"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "agent/proc/evidence.hpp"

namespace ddprun {

namespace asio = boost::asio;

Child::Child(asio::any_io_executor executor, pid_t pid, int pidfd, std::optional<Cgroup> leaf)
    : pid_(pid), pidfd_(std::move(executor)), leaf_(std::move(leaf)) {
  if (pidfd < 0) return;
  boost::system::error_code why;
  pidfd_.assign(pidfd, why);
  if (!why) return;
  ::close(pidfd);
  throw boost::system::system_error(why);
}

// The wait may end early: Asio uses the state of a descriptor again that was closed while its event
// was on its way, and gives the event to the new one.
asio::awaitable<Result<ExitStatus>> Child::wait() {
  const auto token = asio::as_tuple(asio::use_awaitable);
  std::optional<asio::signal_set> ends;  // of any child
  if (!status_ && !pidfd_.is_open()) ends.emplace(pidfd_.get_executor(), SIGCHLD);
  bool looks = ends.has_value();  // it may have ended before the signal was waited for
  if (looks) {                    // never at once: the caller is about to say that it has started
    co_await asio::post(pidfd_.get_executor(), asio::use_awaitable);
  }
  while (!status_) {
    boost::system::error_code why;
    if (!looks && ends) {
      co_await ends->async_wait(asio::redirect_error(asio::use_awaitable, why));
    } else if (!looks) {
      const auto [error] =
          co_await pidfd_.async_wait(asio::posix::stream_descriptor::wait_read, token);
      why = error;
    }
    looks = false;
    if (why) {
      co_return Error{ErrorKind::kSystem, "waiting for process " + std::to_string(pid_) +
                                              " was given up: " + why.message()};
    }
    const auto reaped = reap();
    if (!reaped) co_return reaped.error();
  }
  co_return *status_;
}

// By its number without a pidfd, or if waitid(2) knows none (before Linux 5.4): that is its own
// until it is reaped here.
Result<void> Child::reap() {
  const auto unknown = [this](int error) {
    return Error{ErrorKind::kSystem, "the exit of process " + std::to_string(pid_) +
                                         " is unknown: " + ::strerror(error)};
  };
  siginfo_t info = {};
  constexpr int kLook = WEXITED | WNOHANG | WNOWAIT;
  idtype_t kind = pidfd_.is_open() ? P_PIDFD : P_PID;
  auto id = static_cast<id_t>(pidfd_.is_open() ? pidfd_.native_handle() : pid_);
  int result = ::waitid(kind, id, &info, kLook);
  if (result != 0 && errno == EINVAL) {
    kind = P_PID;
    id = static_cast<id_t>(pid_);
    result = ::waitid(kind, id, &info, kLook);
  }
  if (result != 0) return unknown(errno);
  if (info.si_pid == 0) return {};  // it still runs
  const auto status = ExitStatus::from_siginfo(info.si_code, info.si_status);
  if (!status.success()) limits_ = read_limits(pid_);  // they go with the zombie
  rusage used = {};                                    // only the system call itself reports it
  const int error =
      ::syscall(SYS_waitid, kind, id, &info, WEXITED | WNOHANG, &used) == 0 ? 0 : errno;
  if (error != 0) return unknown(error);
  resident_peak_ = std::int64_t{used.ru_maxrss} * 1024;
  status_ = status;
  return {};
}

void Child::signal_group(int signal_number) {
  if (status_) return;
  ::kill(-pid_, signal_number);
  if (signal_number != SIGKILL) ::kill(-pid_, SIGCONT);
}

void Child::pause_group(bool on) {
  if (!status_) ::kill(-pid_, on ? SIGSTOP : SIGCONT);
}

}  // namespace ddprun

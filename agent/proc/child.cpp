#include "agent/proc/child.hpp"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "agent/proc/evidence.hpp"

namespace ddprun {

namespace asio = boost::asio;

Child::Child(asio::any_io_executor executor, pid_t pid, int pidfd, std::optional<Cgroup> leaf)
    : pid_(pid), pidfd_(std::move(executor)), leaf_(std::move(leaf)) {
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
  while (!status_) {
    const auto [why] = co_await pidfd_.async_wait(asio::posix::stream_descriptor::wait_read, token);
    if (why) {
      co_return Error{ErrorKind::kSystem, "waiting for process " + std::to_string(pid_) +
                                              " was given up: " + why.message()};
    }
    const auto reaped = reap();
    if (!reaped) co_return reaped.error();
  }
  co_return *status_;
}

Result<void> Child::reap() {
  const auto pidfd = static_cast<id_t>(pidfd_.native_handle());
  const auto unknown = [this](int error) {
    return Error{ErrorKind::kSystem, "the exit of process " + std::to_string(pid_) +
                                         " is unknown: " + ::strerror(error)};
  };
  siginfo_t info = {};
  constexpr int kLook = WEXITED | WNOHANG | WNOWAIT;
  if (::waitid(P_PIDFD, pidfd, &info, kLook) != 0) return unknown(errno);
  if (info.si_pid == 0) return {};  // it still runs
  const auto status = ExitStatus::from_siginfo(info.si_code, info.si_status);
  if (!status.success()) limits_ = read_limits(pid_);  // they go with the zombie
  rusage used = {};                                    // only the system call itself reports it
  const int error =
      ::syscall(SYS_waitid, P_PIDFD, pidfd, &info, WEXITED | WNOHANG, &used) == 0 ? 0 : errno;
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

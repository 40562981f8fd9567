#include "agent/control/signals.hpp"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "agent/proc/files.hpp"
#include "base/printable.hpp"
#include "base/process_setup.hpp"
#include "base/signals.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

bool contains(const std::vector<int>& signals, int signal) {
  return std::find(signals.begin(), signals.end(), signal) != signals.end();
}

sigset_t taken_signals(const std::vector<int>& stop_signals) {
  sigset_t taken;
  ::sigemptyset(&taken);
  for (const int signal : stop_signals) ::sigaddset(&taken, signal);
  for (const int signal : {SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH, SIGTSTP})
    ::sigaddset(&taken, signal);
  for (int signal = 1; signal < NSIG; ++signal) {
    if (::sigismember(&ignored_at_start(), signal) == 1) ::sigdelset(&taken, signal);
  }
  return taken;
}

int block_and_open(const std::vector<int>& stop_signals) {
  const sigset_t taken = taken_signals(stop_signals);
  const int descriptor = ::signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC);
  if (descriptor < 0) {
    throw boost::system::system_error(errno, boost::system::system_category(), "signalfd");
  }
  ::pthread_sigmask(SIG_BLOCK, &taken, nullptr);
  return descriptor;
}

// A sender that has ended by now is common: kill(1) does.
std::string name_of_sender(pid_t pid) {
  if (pid == 0) return "a process outside this PID namespace";
  const std::string number = "pid " + std::to_string(pid);
  std::string name = read_file("/proc/" + std::to_string(pid) + "/comm").value_or("");
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name.empty() ? number + ", which has ended" : printable(name) + " (" + number + ")";
}

// The guard could not pass its sender on, because the user's queue of signals is full.
bool has_lost_its_sender(const signalfd_siginfo& info) {
  if (info.ssi_code != SI_USER || static_cast<pid_t>(info.ssi_pid) != ::getppid()) return false;
  const std::string number = std::to_string(info.ssi_pid);
  return read_file("/proc/" + number + "/comm") == std::string(kGuardName) + "\n";
}

ReceivedSignal received_from(const signalfd_siginfo& info, bool forwarded) {
  ReceivedSignal received;
  received.number = static_cast<int>(info.ssi_signo);
  received.by_kernel = forwarded ? forwarded_by_kernel(info.ssi_int) : info.ssi_code > 0;
  if (!received.by_kernel) received.from = name_of_sender(static_cast<pid_t>(info.ssi_pid));
  return received;
}

}  // namespace

Signals::Signals(asio::any_io_executor executor, const std::vector<int>& stop_signals)
    : pending_(std::move(executor), block_and_open(stop_signals)), stop_signals_(stop_signals) {}

std::optional<ReceivedSignal> Signals::next() {
  using Way = SignalPairs::Way;
  signalfd_siginfo info = {};
  while (::read(pending_.native_handle(), &info, sizeof info) == sizeof info) {
    const int number = static_cast<int>(info.ssi_signo);
    const bool forwarded = forwarded_number(info.ssi_code, info.ssi_int) != 0;
    const bool bare = has_lost_its_sender(info);
    const Way way = forwarded || bare ? Way::kForwarded : Way::kDirect;
    if (pairs_.completes_pair(number, way, Clock::now())) continue;
    return bare ? ReceivedSignal{number, "", false} : received_from(info, forwarded);
  }
  return std::nullopt;
}

asio::awaitable<void> Signals::deliver(Handler stop, Handler pass) {
  boost::system::error_code why;
  while (!why) {
    co_await pending_.async_wait(asio::posix::stream_descriptor::wait_read,
                                 asio::redirect_error(asio::use_awaitable, why));
    while (const auto received = why ? std::nullopt : next()) {
      const Handler& handler = contains(stop_signals_, received->number) ? stop : pass;
      handler(*received);
    }
  }
}

}  // namespace ddprun

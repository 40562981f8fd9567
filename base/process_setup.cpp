#include "base/process_setup.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

namespace ddprun {

const sigset_t& ignored_at_start() {
  static const sigset_t kIgnored = [] {
    sigset_t set;
    ::sigemptyset(&set);
    for (int number = 1; number < NSIG; ++number) {
      struct sigaction action = {};
      const bool known = ::sigaction(number, nullptr, &action) == 0;
      if (known && action.sa_handler == SIG_IGN) ::sigaddset(&set, number);
    }
    return set;
  }();
  return kIgnored;
}

void prepare_process() {
  static_cast<void>(ignored_at_start());
  // open() returns the lowest free number, so the loop ends with the first one above 2.
  int descriptor = ::open("/dev/null", O_RDWR);
  while (descriptor >= 0 && descriptor <= 2) descriptor = ::open("/dev/null", O_RDWR);
  if (descriptor > 2) ::close(descriptor);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
}

void unblock_signals(const std::vector<int>& signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : signals) ::sigaddset(&set, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

std::optional<rlimit> raise_descriptor_limit() {
  rlimit before{};
  if (::getrlimit(RLIMIT_NOFILE, &before) != 0) return std::nullopt;
  const rlimit raised{before.rlim_max, before.rlim_max};
  (void)::setrlimit(RLIMIT_NOFILE, &raised);  // refused: fewer clients fit, and the log says so
  return before;
}

std::size_t descriptors_for_clients(std::size_t reserve) {
  rlimit limit{};
  const bool known = ::getrlimit(RLIMIT_NOFILE, &limit) == 0;
  const std::size_t all = known ? limit.rlim_cur : std::numeric_limits<std::size_t>::max();
  return all - std::min(reserve, all / 2);
}

}  // namespace ddprun

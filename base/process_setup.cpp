#include "base/process_setup.hpp"

#include <signal.h>

namespace ddprun {

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

}  // namespace ddprun

#include "base/process_setup.hpp"

#include <signal.h>

namespace ddprun {

void unblock_signals(const std::vector<int>& signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : signals) ::sigaddset(&set, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace ddprun

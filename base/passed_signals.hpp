// Which signals one node passes on to the workers of others: those by which users and schedulers
// tell a program something. What cannot be handled, or reports a fault, ends or freezes ranks: on
// other nodes no member may do that with a message. Pure.
#pragma once

#include <csignal>

namespace ddprun {

[[nodiscard]] inline bool may_be_passed_on(int signal) {
  switch (signal) {
    case SIGHUP:
    case SIGINT:
    case SIGQUIT:
    case SIGUSR1:
    case SIGUSR2:
    case SIGALRM:
    case SIGTERM:
    case SIGURG:
    case SIGIO:
    case SIGPWR:
      return true;
    default:
      return signal >= SIGRTMIN && signal <= SIGRTMAX;
  }
}

}  // namespace ddprun

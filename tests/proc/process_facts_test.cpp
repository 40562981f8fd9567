#include "agent/proc/process_facts.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/catch.hpp"

using namespace ddprun;

TEST_CASE("a process that handles or blocks a signal may answer it by an exit of its own") {
  const auto may_handle_it = [] { return may_handle(::getpid(), SIGUSR2); };
  const auto before = ::signal(SIGUSR2, SIG_DFL);
  CHECK_FALSE(may_handle_it());
  ::signal(SIGUSR2, SIG_IGN);
  CHECK_FALSE(may_handle_it());
  ::signal(SIGUSR2, [](int) {});
  CHECK(may_handle_it());
  CHECK_FALSE(may_handle(::getpid(), SIGUSR1));
  ::signal(SIGUSR2, before);
  sigset_t blocked{};
  sigset_t own{};
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGUSR2);
  ::sigprocmask(SIG_BLOCK, &blocked, &own);
  CHECK(may_handle_it());
  ::sigprocmask(SIG_SETMASK, &own, nullptr);
}

TEST_CASE("what an ended process handles is known until its parent waits for it") {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t ended{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
  CHECK_FALSE(may_handle(child, SIGUSR2));
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(may_handle(child, SIGUSR2));
}

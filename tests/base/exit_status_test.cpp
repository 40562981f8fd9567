#include "base/exit_status.hpp"

#include <signal.h>

#include "tests/support/catch.hpp"

using ddprun::ExitStatus;

TEST_CASE("an exit code of 9 and a SIGKILL are distinct") {
  const auto exited = ExitStatus::from_siginfo(CLD_EXITED, 9);
  const auto killed = ExitStatus::from_siginfo(CLD_KILLED, SIGKILL);
  CHECK_FALSE(exited == killed);
  CHECK(exited.text() == "exit code 9");
  CHECK(killed.text() == "SIGKILL");
}

TEST_CASE("all 256 exit codes are preserved") {
  for (int code = 0; code < 256; ++code) {
    const auto status = ExitStatus::from_siginfo(CLD_EXITED, code);
    CHECK(status.shell_code() == code);
    CHECK(status.success() == (code == 0));
  }
}

TEST_CASE("death by a signal is reported as 128 plus the signal number, as in a shell") {
  CHECK(ExitStatus::signaled(SIGTERM).shell_code() == 143);
  CHECK(ExitStatus::signaled(SIGSEGV, ExitStatus::Core::kDumped).text() == "SIGSEGV (core dumped)");
  CHECK(ExitStatus::signaled(40).text() == "signal 40");
}

TEST_CASE("signal names are parsed exactly") {
  CHECK(ddprun::signal_number("SIGHUP") == SIGHUP);
  CHECK(ddprun::signal_number("sighup") == 0);
  CHECK(ddprun::signal_number("TERM") == 0);
}

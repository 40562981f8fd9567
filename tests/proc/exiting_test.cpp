#include "agent/proc/process_facts.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <string>

#include "agent/proc/descendants.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;

namespace {

/// A line of /proc/PID/stat; the name is the program's own choice.
std::string stat_line(const std::string& flags, const std::string& exit_code) {
  std::string line = "77 (a) R 4 (b) R 1 77 77 0 -1 " + flags;
  for (int field = 7; field < 49; ++field) line += " 0";
  return line + " " + exit_code + "\n";
}

/// A child that has ended as `body` does, and is not reaped before this goes.
template <class Body>
class Zombie {
 public:
  explicit Zombie(Body body) : pid_(::fork()) {
    if (pid_ == 0) {
      body();
      ::_exit(99);
    }
    siginfo_t info = {};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) == 0);
  }
  ~Zombie() { ::waitpid(pid_, nullptr, 0); }
  Zombie(const Zombie&) = delete;
  Zombie& operator=(const Zombie&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

}  // namespace

TEST_CASE("the status of a process that exits is read from its line in /proc") {
  CHECK(parse_exiting(stat_line("4228108", "9")) == ExitStatus::signaled(9));
  CHECK(parse_exiting(stat_line("4", "139")) ==
        ExitStatus::signaled(11, ExitStatus::Core::kDumped));
  CHECK(parse_exiting(stat_line("4", "768")) == ExitStatus::exited(3));
  CHECK_FALSE(parse_exiting(stat_line("4194304", "9")));  // it does not exit
  CHECK_FALSE(parse_exiting(stat_line("4", "0")));
  CHECK_FALSE(parse_exiting("77 (a) R 4"));
  CHECK_FALSE(parse_exiting("77 (a"));
  CHECK_FALSE(parse_exiting(""));
}

TEST_CASE("one that has ended and was not reaped exits, one that lives does not") {
  const Zombie three([] { ::_exit(3); });
  CHECK(status_of_exiting(three.pid()) == ExitStatus::exited(3));
  const Zombie killed([] { ::raise(SIGKILL); });
  CHECK(status_of_exiting(killed.pid()) == ExitStatus::signaled(SIGKILL));
  const Zombie well([] { ::_exit(0); });
  CHECK_FALSE(status_of_exiting(well.pid()));
  CHECK_FALSE(status_of_exiting(::getpid()));
  CHECK_FALSE(status_of_exiting(0));
}

TEST_CASE("what a process that exits has started is not overlooked") {
  boost::asio::io_context io;
  Orphans orphans(io.get_executor());
  CHECK_FALSE(is_alone(::getppid(), std::nullopt, orphans));  // this one is its child
  const Zombie alone([] { ::setsid(); });
  orphans.except(alone.pid());
  CHECK(is_alone(alone.pid(), std::nullopt, orphans));
  // Its child has lost it, and is this one's.
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  const Zombie left([&] {
    ::setsid();
    if (::fork() != 0) return;
    ::close(pipe[1]);
    char end = 0;
    if (::read(pipe[0], &end, 1) != 0) ::_exit(1);  // until the test is over
  });
  orphans.except(left.pid());
  CHECK_FALSE(is_alone(left.pid(), std::nullopt, orphans));
  CHECK(is_alone(alone.pid(), std::nullopt, orphans));
  ::close(pipe[1]);
  ::close(pipe[0]);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

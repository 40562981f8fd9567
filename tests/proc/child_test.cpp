#include "agent/proc/child.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/process_setup.hpp"
#include "tests/proc/grandchildren.hpp"
#include "tests/support/stale_event.hpp"

using ddprun::ExitStatus;
using namespace proc_test;

namespace {

ExitStatus status_of(const ddprun::SpawnRequest& request) {
  boost::asio::io_context io;
  auto child = ddprun::spawn(io.get_executor(), request);
  if (!child) FAIL(child.error().sentence);
  return wait_for(io, *child);
}

}  // namespace

TEST_CASE("a worker's exit(9) and its death by SIGKILL are told apart") {
  CHECK(status_of(probe("exit", "9")) == ExitStatus::exited(9));
  CHECK(status_of(probe("raise", "9")) == ExitStatus::signaled(SIGKILL));
}

TEST_CASE("exits are learned although ddprun was started with SIGCHLD ignored") {
  const pid_t process = ::fork();
  if (process == 0) {
    ::signal(SIGCHLD, SIG_IGN);
    ddprun::prepare_process();
    ::_exit(status_of(probe("exit", "3")) == ExitStatus::exited(3) ? 0 : 1);
  }
  int status = 0;
  ::waitpid(process, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("without a pidfd the end of a process is learned from SIGCHLD") {
  boost::asio::io_context io;
  ddprun::unblock_signals({SIGCHLD});
  const std::string what = GENERATE("exit", "raise");  // before the wait, or in it
  Pipe pipe;
  const pid_t process = ::fork();
  if (process == 0) {
    pipe.close_write();
    if (what == "raise") static_cast<void>(pipe.read_all());
    ::_exit(9);
  }
  siginfo_t info = {};
  if (what == "exit") ::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOWAIT);
  ddprun::Child child(io.get_executor(), process, -1);
  if (what == "raise") boost::asio::post(io, [&] { pipe.close_write(); });
  CHECK(wait_for(io, child) == ExitStatus::exited(9));
  CHECK(children() == 0);
}

TEST_CASE("a process that was reaped elsewhere is an error, not an invented exit code") {
  boost::asio::io_context io;
  auto child = ddprun::spawn(io.get_executor(), probe("exit", "3"));
  REQUIRE(child.has_value());
  ::waitpid(child->pid(), nullptr, 0);
  std::string sentence;
  run(io, [](ddprun::Child& waited, std::string& said) -> boost::asio::awaitable<void> {
    auto ended = co_await waited.wait();
    if (!ended) said = ended.error().sentence;
  }(*child, sentence));
  CHECK_THAT(sentence, ContainsSubstring("is unknown"));
}

TEST_CASE("an event of a descriptor closed before is not taken for the end of a process") {
  boost::asio::io_context io;
  ddprun::test::StaleEvent stale(io);
  std::optional<ddprun::Child> child;
  std::optional<ddprun::Result<ExitStatus>> ended;
  const auto work = [&]() -> boost::asio::awaitable<void> {
    co_await stale.async_wait(boost::asio::use_awaitable);
    stale.close();
    auto started = ddprun::spawn(io.get_executor(), probe("wait"));
    child.emplace(std::move(*started));
    ended = co_await child->wait();
  };
  boost::asio::co_spawn(io, work, boost::asio::detached);
  run_until(io, [&child] { return child.has_value(); });
  for (int events = 0; events < 3; ++events) io.run_one_for(std::chrono::milliseconds(50));
  CHECK_FALSE(ended.has_value());
  child->signal_group(SIGKILL);
  run_until(io, [&ended] { return ended.has_value(); });
  CHECK(ended->value() == ExitStatus::signaled(SIGKILL));
}

TEST_CASE("a signal to the group reaches a grandchild") {
  boost::asio::io_context io;
  Pipe pipe;
  auto request = probe("wait", "with-children");
  request.stdout_fd = pipe.write_end();
  auto child = ddprun::spawn(io.get_executor(), request);
  REQUIRE(child.has_value());
  const Grandchildren pids(pipe);
  REQUIRE(alive(pids.in_group));
  child->signal_group(SIGTERM);
  CHECK(wait_for(io, *child) == ExitStatus::signaled(SIGTERM));
  CHECK(eventually([&] { return !alive(pids.in_group); }));
}

TEST_CASE("a worker that has been reaped keeps its status") {
  boost::asio::io_context io;
  auto child = ddprun::spawn(io.get_executor(), probe("exit", "5"));
  REQUIRE(child.has_value());
  CHECK(wait_for(io, *child) == ExitStatus::exited(5));
  CHECK(wait_for(io, *child) == ExitStatus::exited(5));
}

TEST_CASE("a signal for a worker that has been reaped does not reach who has its number now") {
  boost::asio::io_context io;
  auto child = ddprun::spawn(io.get_executor(), probe("exit", "0"));
  REQUIRE(child.has_value());
  CHECK(wait_for(io, *child) == ExitStatus::exited(0));
  const Stranger stranger(child->pid());
  if (!stranger.here()) return;
  child->signal_group(SIGKILL);
  CHECK(stranger.untouched());
}

TEST_CASE("a worker dies with an agent that is killed by SIGKILL") {
  Pipe pipe;
  const pid_t agent = ::fork();
  if (agent == 0) {
    boost::asio::io_context io;
    auto request = probe("wait", "ready");
    request.stdout_fd = pipe.write_end();
    const auto child = ddprun::spawn(io.get_executor(), request);
    const std::string pid = std::to_string(child ? child->pid() : 0) + "\n";
    if (::write(pipe.write_end(), pid.data(), pid.size()) < 0) ::_exit(1);
    while (true) ::pause();
  }
  const std::string both =
      pipe.read_line() + pipe.read_line();  // the pid and "ready", in any order
  const auto digits = both.find_first_of("0123456789");
  REQUIRE(digits != std::string::npos);
  const pid_t worker = std::stoi(both.substr(digits));
  REQUIRE(alive(worker));
  ::kill(agent, SIGKILL);
  ::waitpid(agent, nullptr, 0);
  const bool gone = eventually([&] { return !alive(worker); });
  if (!gone) ::kill(worker, SIGKILL);
  CHECK(gone);
}

TEST_CASE("a wait that is cancelled leaves the worker alone") {
  boost::asio::io_context io;
  auto child = ddprun::spawn(io.get_executor(), probe("wait"));
  REQUIRE(child.has_value());
  boost::asio::cancellation_signal cancel;
  std::string sentence;
  bool done = false;
  auto waiting = [](ddprun::Child& waited, std::string& said) -> boost::asio::awaitable<void> {
    auto ended = co_await waited.wait();
    if (!ended) said = ended.error().sentence;
  }(*child, sentence);
  auto when_done = boost::asio::bind_cancellation_slot(
      cancel.slot(), [&done](const std::exception_ptr&) { done = true; });
  boost::asio::co_spawn(io, std::move(waiting), std::move(when_done));
  boost::asio::post(io, [&] { cancel.emit(boost::asio::cancellation_type::terminal); });
  run_until(io, [&] { return done; });
  CHECK(alive(child->pid()));
  child->signal_group(SIGKILL);
  CHECK(wait_for(io, *child) == ExitStatus::signaled(SIGKILL));
}

TEST_CASE("a closed standard descriptor is opened, so that no socket gets its number") {
  const pid_t process = ::fork();
  if (process == 0) {
    ::close(0);
    ::close(2);
    ddprun::prepare_process();
    const int next = ::open("/dev/null", O_RDONLY);
    ::_exit(::fcntl(0, F_GETFD) == 0 && ::fcntl(2, F_GETFD) == 0 && next > 2 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(process, &status, 0);
  CHECK(status == 0);
}

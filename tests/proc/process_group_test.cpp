// What a worker leaves in its process group when it ends.
#include "agent/proc/process_group.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>

#include "agent/proc/process_table.hpp"
#include "tests/proc/grandchildren.hpp"

using ddprun::ExitStatus;
using namespace proc_test;

namespace {

/// A probe that has ended, and whose children it left behind.
struct Left {
  explicit Left(boost::asio::io_context& io, const std::string& what = "leave-children") {
    Pipe pipe;
    auto request = probe(what);
    request.stdout_fd = pipe.write_end();
    auto spawned = ddprun::spawn(io.get_executor(), request);
    REQUIRE(spawned.has_value());
    child.emplace(std::move(*spawned));
    pids.emplace(pipe);
    CHECK(wait_for(io, *child) == ExitStatus::exited(0));
  }
  std::optional<ddprun::Child> child;
  std::optional<Grandchildren> pids;
};

void wait_until_empty(boost::asio::io_context& io, ddprun::Child& child) {
  run(io, child.left_behind()->wait_until_empty());
}

}  // namespace

TEST_CASE("what a worker leaves in its group is left alone, named, and its end is learned") {
  boost::asio::io_context io;
  Left left(io);
  REQUIRE(left.child->left_behind() != nullptr);
  CHECK(alive(left.pids->in_group));
  CHECK(left.child->left_behind()->names() == std::vector<std::string>{"proc_probe"});
  left.child->signal_group(SIGTERM);
  wait_until_empty(io, *left.child);
  CHECK_FALSE(alive(left.pids->in_group));
  CHECK(alive(left.pids->in_session));  // another session: not reached through the group
  CHECK(left.child->left_behind()->names().empty());
}

TEST_CASE("a process whose main thread has ended while another one runs is not gone") {
  boost::asio::io_context io;
  Left left(io, "leave-without-main-thread");
  const auto main_thread_ended = [&] { return !alive(left.pids->in_group); };
  REQUIRE(eventually(main_thread_ended));
  ddprun::ProcessGroup group(io.get_executor(), left.child->pid());
  CHECK(group.look());
  CHECK(group.names() == std::vector<std::string>{"proc_probe"});
  group.signal(SIGTERM);
  run(io, group.wait_until_empty());
  CHECK(eventually([&] { return !exists_in_proc(left.pids->in_group); }));
}

TEST_CASE("a worker that left nothing in its group costs no look through /proc") {
  boost::asio::io_context io;
  auto child = ddprun::spawn(io.get_executor(), probe("exit", "0"));
  REQUIRE(child.has_value());
  CHECK(wait_for(io, *child) == ExitStatus::exited(0));
  CHECK(child->left_behind() == nullptr);
}

TEST_CASE("what the left behind fork is waited for, and gets the last signal, too") {
  boost::asio::io_context io;
  TempDir directory;
  // Each ends as soon as the next one runs, which is not there when the group is looked at; the
  // last one stays.
  auto request = shell("chain() { if [ $1 = 0 ]; then echo > " + (directory / "last") +
                       "; exec sleep 1000; fi; (chain $(($1 - 1))) & }; chain 20 & exit 0");
  auto child = ddprun::spawn(io.get_executor(), request);
  REQUIRE(child.has_value());
  CHECK(wait_for(io, *child) == ExitStatus::exited(0));
  REQUIRE(child->left_behind() != nullptr);
  REQUIRE(eventually([&] { return !contents(directory / "last").empty(); }));
  child->signal_group(SIGKILL);  // the ones that were seen may have ended: then none gets it now
  wait_until_empty(io, *child);
  CHECK(child->left_behind()->names().empty());
}

TEST_CASE("zombies that are never reaped are not waited for") {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  boost::asio::io_context io;
  Left left(io);
  left.child->signal_group(SIGKILL);
  wait_until_empty(io, *left.child);
  CHECK(::waitpid(left.pids->in_group, nullptr, 0) == left.pids->in_group);  // it was a zombie
  ::kill(left.pids->in_session, SIGKILL);
  CHECK(::waitpid(left.pids->in_session, nullptr, 0) == left.pids->in_session);
  left.pids->in_session = 0;
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_CASE("a signal for what a worker left does not reach who has its number now") {
  boost::asio::io_context io;
  Left left(io);
  ::kill(left.pids->in_group, SIGKILL);
  REQUIRE(eventually([&] { return !exists_in_proc(left.pids->in_group); }));
  const Stranger stranger(left.child->pid());
  if (!stranger.here()) return;
  left.child->signal_group(SIGKILL);
  wait_until_empty(io, *left.child);
  CHECK(stranger.untouched());
}

TEST_CASE("a process that leaves the group is neither signalled nor waited for") {
  boost::asio::io_context io;
  TempDir directory;
  REQUIRE(::mkfifo((directory / "go").c_str(), 0600) == 0);
  auto request = shell("(read go < " + (directory / "go") +
                       "; exec setsid sh -c 'echo $$ > $0; exec sleep 1000' " +
                       (directory / "pid") + ") & exit 0");
  auto child = ddprun::spawn(io.get_executor(), request);
  REQUIRE(child.has_value());
  CHECK(wait_for(io, *child) == ExitStatus::exited(0));
  REQUIRE(child->left_behind() != nullptr);
  std::ofstream(directory / "go") << "go\n";
  REQUIRE(eventually([&] { return contents(directory / "pid").ends_with('\n'); }));
  const pid_t left = std::stoi(contents(directory / "pid"));
  child->signal_group(SIGKILL);
  wait_until_empty(io, *child);
  CHECK(alive(left));
  ::kill(left, SIGKILL);
}

TEST_CASE("what cannot be watched for lack of descriptors gets SIGKILL") {
  boost::asio::io_context io;
  Left left(io);
  rlimit before = {};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const int next = ::dup(1);
  ::close(next);
  ddprun::ProcessGroup group(io.get_executor(), left.child->pid());
  {
    const rlimit none = {static_cast<rlim_t>(next + 1),
                         before.rlim_max};  // for /proc, not for stat
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  const bool there = group.look();
  ::setrlimit(RLIMIT_NOFILE, &before);
  CHECK_FALSE(there);
  CHECK(eventually([&] { return !alive(left.pids->in_group); }));
}

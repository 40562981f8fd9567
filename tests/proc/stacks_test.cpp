#include "agent/proc/stacks.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <memory>

#include "agent/proc/process_facts.hpp"
#include "agent/proc/progress.hpp"
#include "tests/proc/support.hpp"

using ddprun::ProcessStacks;
using ddprun::StackDump;
using ddprun::StackTools;
using ddprun::ThreadStack;
using namespace proc_test;

namespace {

/// Workers that are stuck, killed at the end.
class Stuck {
 public:
  explicit Stuck(boost::asio::io_context& io) : io_(io) {}
  ~Stuck() {
    for (const auto& child : children_) child->signal_group(SIGCONT);
    for (const auto& child : children_) child->signal_group(SIGKILL);
    for (const auto& child : children_) ::waitpid(child->pid(), nullptr, 0);
  }
  Stuck(const Stuck&) = delete;
  Stuck& operator=(const Stuck&) = delete;

  void start(ddprun::SpawnRequest request) {
    const Pipe ready;
    request.stdout_fd = ready.write_end();
    auto child = ddprun::spawn(io_.get_executor(), request);
    REQUIRE(child.has_value());
    static_cast<void>(ready.read_line());
    children_.push_back(std::make_unique<ddprun::Child>(std::move(*child)));
    const auto number = static_cast<int>(workers_.size());
    workers_.push_back(
        {ddprun::Rank(number), ddprun::LocalRank(number), children_.back()->pid(), "here"});
  }
  void start(const std::string& what) {
    start({STUCK_WORKER, {"stuck", what}, {"PATH=/usr/bin:/bin"}, 1, 2});
    if (what != "stopped") await_state(workers_.back().pid, 'S');
  }
  static void await_state(pid_t pid, char state) {
    REQUIRE(eventually([&] { return ddprun::read_process(pid).state == state; }));
  }
  [[nodiscard]] pid_t pid(std::size_t at) const { return workers_.at(at).pid; }

  StackDump dump(StackTools tools) {
    StackDump result;
    run(io_, [](Stuck& self, StackTools& with, StackDump& into) -> boost::asio::awaitable<void> {
      const ddprun::TimePoint deadline = ddprun::Clock::now() + ddprun::kStacksMax;
      const ddprun::DiskThread disk(self.io_.get_executor());
      into = co_await ddprun::dump_stacks(self.io_.get_executor(), disk, self.orphans_, with,
                                          self.workers_, deadline);
    }(*this, tools, result));
    REQUIRE(result.ranks.size() == workers_.size());
    return result;
  }

 private:
  boost::asio::io_context& io_;
  ddprun::Orphans orphans_{io_.get_executor()};
  std::vector<std::unique_ptr<ddprun::Child>> children_;
  std::vector<ddprun::WorkerName> workers_;
};

StackTools unwinder() {
  return {UNWINDER, "", {"PATH=/usr/bin:/bin"}};
}

/// Whether the C program's stack is there; where ptrace is refused, that it was said.
void check_native(const ProcessStacks& process) {
  if (process.missing.find("denies ptrace") != std::string::npos) {
    WARN("ptrace is denied here: native stacks are not tested");
    return;
  }
  CHECK(process.missing.empty());
  REQUIRE_FALSE(process.native.empty());
  std::vector<std::string> names;
  for (const auto& frame : process.native.front().frames) names.push_back(frame.function);
  const auto place = std::find(names.begin(), names.end(), "wait_for_itself");
  REQUIRE(place != names.end());
  CHECK(*(place + 1) == "train_step");
}

/// A program in place of a tool.
std::string script(const TempDir& dir, const std::string& text) {
  write_file(dir / "tool", "#!/bin/sh\n" + text + "\n", 0755);
  return dir / "tool";
}

}  // namespace

TEST_CASE("a deadlock on a mutex is found in the native stack of a rank, which continues") {
  boost::asio::io_context io;
  Stuck ranks(io);
  ranks.start("deadlock");
  const StackDump dump = ranks.dump(unwinder());
  const ProcessStacks& process = dump.ranks[0].processes.at(0);
  CHECK(process.name == "stuck_worker");
  CHECK(process.state == 'S');
  CHECK(process.system_call == "futex");
  check_native(process);
  Stuck::await_state(ranks.pid(0), 'S');
}

TEST_CASE("all threads of a rank are in its stacks, the main thread first") {
  boost::asio::io_context io;
  Stuck ranks(io);
  ranks.start("threads");
  const StackDump dump = ranks.dump(unwinder());
  const ProcessStacks& process = dump.ranks[0].processes.at(0);
  check_native(process);
  if (!process.native.empty()) {
    CHECK(process.native.size() == 2);
    CHECK(process.native[0].tid == ranks.pid(0));
  }
}

TEST_CASE("the stacks of 64 ranks are there within two seconds") {
  boost::asio::io_context io;
  Stuck ranks(io);
  for (int rank = 0; rank < 64; ++rank) ranks.start("deadlock");
  const StackDump dump = ranks.dump(unwinder());
  CHECK(dump.took <= ddprun::kStacksMax);
  check_native(dump.ranks[0].processes.at(0));
  for (const auto& rank : dump.ranks) {
    const ProcessStacks& process = rank.processes.at(0);
    CHECK(process.system_call == "futex");
    // A busy machine may not read all of them; then that is said.
    CHECK(process.native.empty() == process.missing.ends_with("in time"));
  }
}

TEST_CASE("a stopped rank is not traced, and stays stopped") {
  boost::asio::io_context io;
  Stuck ranks(io);
  ranks.start("stopped");
  Stuck::await_state(ranks.pid(0), 'T');
  const StackDump dump = ranks.dump(unwinder());
  CHECK(dump.ranks[0].processes.at(0).state == 'T');
  CHECK(dump.ranks[0].processes.at(0).native.empty());
  CHECK(ddprun::read_process(ranks.pid(0)).state == 'T');
}

TEST_CASE("a wait that continues after a stop is told by its wait channel alone") {
  boost::asio::io_context io;
  Stuck stuck(io);
  stuck.start(shell("echo; exec sleep 1000"));
  const auto waits_in = [&] { return ddprun::read_process(stuck.pid(0)).system_call; };
  REQUIRE(eventually([&] { return ddprun::read_process(stuck.pid(0)).name == "sleep"; }));
  Stuck::await_state(stuck.pid(0), 'S');
  if (waits_in().empty()) return;  // this kernel does not tell, or not us
  REQUIRE(eventually([&] { return waits_in().ends_with("nanosleep"); }));
  ::kill(stuck.pid(0), SIGSTOP);
  Stuck::await_state(stuck.pid(0), 'T');
  ::kill(stuck.pid(0), SIGCONT);
  Stuck::await_state(stuck.pid(0), 'S');
  CHECK(waits_in() == "");
}

TEST_CASE("where the leader of a rank is a shell, the stacks are those of what it runs") {
  boost::asio::io_context io;
  Stuck ranks(io);
  ranks.start(shell(std::string(STUCK_WORKER) + " deadlock; true"));
  CHECK(eventually([&] {
    const StackDump dump = ranks.dump({});
    return dump.ranks[0].processes.at(0).name == "stuck_worker";
  }));
}

TEST_CASE("a rank that ends while stacks are read costs only its own") {
  boost::asio::io_context io;
  Stuck ranks(io);
  ranks.start("deadlock");
  ranks.start("deadlock");
  ::kill(ranks.pid(0), SIGKILL);
  const StackDump dump = ranks.dump(unwinder());
  CHECK(dump.ranks[0].processes.at(0).native.empty());
  check_native(dump.ranks[1].processes.at(0));
}

TEST_CASE("the name of a rank with line ends and brackets does not forge its state") {
  boost::asio::io_context io;
  Stuck ranks(io);
  ranks.start("named");
  CHECK(eventually([&] { return ddprun::read_process(ranks.pid(0)).name == "a\nb) R\x1b[2J"; }));
  Stuck::await_state(ranks.pid(0), 'S');
}

TEST_CASE("a tool that hangs is killed, and the stacks are missing with the reason") {
  boost::asio::io_context io;
  const TempDir dir;
  Stuck ranks(io);
  ranks.start("deadlock");
  StackTools hanging{script(dir, "exec tail -f /dev/null"), "", {"PATH=/usr/bin:/bin"}};
  const int before = children();
  const StackDump dump = ranks.dump(hanging);
  CHECK(dump.took <= ddprun::kStacksMax);
  CHECK(dump.ranks[0].processes.at(0).native.empty());
  CHECK(dump.ranks[0].processes.at(0).missing ==
        "no native stacks: ddprun-stacks gave none in time");
  run_until(io, [&] { return children() <= before; });
}

TEST_CASE("ranks whose tracing the kernel denies are told from those that have no stack") {
  boost::asio::io_context io;
  const TempDir dir;
  Stuck ranks(io);
  ranks.start("deadlock");
  StackTools denied{script(dir, "printf 'E\\t%s\\tdenied\\n' $2"), "", {"PATH=/usr/bin:/bin"}};
  const StackDump dump = ranks.dump(denied);
  CHECK(dump.ranks[0].processes.at(0).missing == "the kernel denies ptrace: no native stacks");
}

TEST_CASE("what a rank and its children use and write is counted, and nothing of one that sleeps") {
  boost::asio::io_context io;
  Stuck ranks(io);
  ranks.start("deadlock");
  ranks.start(shell("echo; (while :; do echo x > /dev/null; done); true"));
  const auto progress = [&] { return ddprun::read_progress({ranks.pid(0), ranks.pid(1)}); };
  const auto before = progress();
  REQUIRE(before.size() == 2);
  CHECK(eventually([&] {
    const auto now = progress();
    return now[1].cpu > before[1].cpu && now[1].written > before[1].written;
  }));
  CHECK(progress()[0].cpu == before[0].cpu);
  CHECK(progress()[0].written == before[0].written);
  CHECK(progress()[0].processes == before[0].processes);
}

TEST_CASE("another user's process is denied, not awaited") {
  if (::getuid() != 0) {
    WARN("only root has processes of two users: not tested");
    return;
  }
  Pipe pipe;
  const pid_t helper = ::fork();
  if (helper == 0) {
    const std::string parent = std::to_string(::getppid());
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(77);
    ::dup2(pipe.write_end(), STDOUT_FILENO);
    ::execl(UNWINDER, "ddprun-stacks", "1", parent.c_str(), nullptr);
    ::_exit(77);
  }
  const std::string text = pipe.read_all();
  int status = 0;
  ::waitpid(helper, &status, 0);
  if (WEXITSTATUS(status) == 77) {
    WARN("user 65534 cannot run the helper: not tested");
    return;
  }
  CHECK(text == "E\t" + std::to_string(::getpid()) + "\tdenied\n");
}

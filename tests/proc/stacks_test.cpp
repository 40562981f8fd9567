#include "agent/proc/stacks.hpp"

#include <signal.h>
#include <sys/ptrace.h>
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

  /// Returns the line that it writes when it is ready.
  std::string start(ddprun::SpawnRequest request) {
    const Pipe ready;
    request.stdout_fd = ready.write_end();
    auto child = ddprun::spawn(io_.get_executor(), request);
    REQUIRE(child.has_value());
    const std::string line = ready.read_line();
    children_.push_back(std::make_unique<ddprun::Child>(std::move(*child)));
    const auto number = static_cast<int>(workers_.size());
    workers_.push_back(
        {ddprun::Rank(number), ddprun::LocalRank(number), children_.back()->pid(), "here"});
    return line;
  }
  std::string start_python(const std::string& script, const std::string& argument = "") {
    return start({"/usr/bin/env",
                  {"env", "python3", "-c", script, argument},
                  {"PATH=/usr/local/bin:/usr/bin:/bin"},
                  1,
                  2});
  }
  void start(const std::string& what) {
    static_cast<void>(start({STUCK_WORKER, {"stuck", what}, {"PATH=/usr/bin:/bin"}, 1, 2}));
    if (what == "vfork") return await_state(workers_.back().pid, 'D');
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
  ranks.start(shell("'" + std::string(STUCK_WORKER) + "' deadlock; true"));
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

TEST_CASE("what a rank reads, maps and gets over TCP is counted, and nothing of one that sleeps") {
  boost::asio::io_context io;
  const TempDir dir;
  std::ofstream(dir / "mapped") << std::string(1 << 20, 'x');
  Stuck ranks(io);
  ranks.start("deadlock");
  static_cast<void>(ranks.start_python(
      "import mmap, os, socket, sys\n"
      "a = socket.create_server(('127.0.0.1', 0))\n"
      "b = socket.create_connection(a.getsockname()); c = a.accept()[0]\n"
      "zeros = os.open('/dev/zero', 0); file = open(sys.argv[1])\n"
      "print(flush=True)\n"
      "while True:\n"
      "  b.send(b'x' * 4096); c.recv(4096); os.read(zeros, 4096)\n"
      "  mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ); mapped[4096]\n",
      dir / "mapped"));
  const auto progress = [&] {
    return ddprun::read_progress_closely({ranks.pid(0), ranks.pid(1)}, 1);
  };
  const auto before = progress();
  CHECK(eventually([&] {
    const auto now = progress();
    return now[1].read > before[1].read && now[1].faults > before[1].faults &&
           now[1].close->network > before[1].close->network;
  }));
  const auto after = progress();
  CHECK(after[0].read == before[0].read);
  CHECK(after[0].faults == before[0].faults);
  CHECK(after[0].close->network == 0);
  CHECK(after[0].close->io_wait == 0);
  CHECK_FALSE(after[0].close->for_user);
}

TEST_CASE("what goes to the store and back is not counted, it is asked again and again") {
  boost::asio::io_context io;
  Stuck ranks(io);
  const std::string port = ranks.start_python(
      "import socket\n"
      "a = socket.create_server(('127.0.0.1', 0))\n"
      "b = socket.create_connection(a.getsockname()); c = a.accept()[0]\n"
      "c.send(b'x' * 777); b.recv(777)\n"
      "print(a.getsockname()[1], flush=True); a.accept()\n");
  const auto bytes_but = [&](int store) {
    const auto ports = static_cast<std::uint16_t>(store);
    return ddprun::read_progress_closely({ranks.pid(0)}, ports)[0].close->network;
  };
  // Both ends are the rank's. The kernel counts the first sign of each as a byte, too.
  CHECK(eventually([&] { return bytes_but(1) >= 2 * 777; }));
  CHECK(bytes_but(std::stoi(port)) >= 777);
  CHECK(bytes_but(std::stoi(port)) < 2 * 777);
}

TEST_CASE("a thread that waits for a terminal is found, however it waits, and for nothing else") {
  boost::asio::io_context io;
  Stuck ranks(io);
  const std::string begin =
      "import os, pty, select, sys, threading\n"
      "leader, tty = pty.openpty(); reader, writer = os.pipe()\n"
      "poll = select.poll(); epoll = select.epoll(); print(flush=True)\n";
  const std::vector<std::string> waits = {
      "os.read(tty, 1)", "select.select([reader, tty], [], [])",
      "poll.register(reader, 1); poll.register(tty, 1); poll.poll()",
      "epoll.register(tty, 1); epoll.poll()",
      "threading.Thread(target=os.read, args=(tty, 1)).start(); os.read(reader, 1)"};
  const std::vector<std::string> others = {
      "os.read(reader, 1)", "os.read(leader, 1)", "select.select([reader], [tty], [], 1000)",
      "poll.register(reader, 1); poll.poll()", "epoll.register(reader, 1); epoll.poll()"};
  const auto for_user = [&](std::size_t at) {
    return ddprun::read_progress_closely({ranks.pid(at)}, 1)[0].close->for_user;
  };
  std::size_t at = 0;
  for (const std::string& wait : waits) {
    INFO(wait);
    static_cast<void>(ranks.start_python(begin + wait + "\n"));
    CHECK(eventually([&] { return for_user(at); }));
    CHECK(ddprun::rank_waits_for_terminal(ranks.pid(at), ddprun::Threads::kAll));
    const bool in_main = wait.find("Thread") == std::string::npos;
    CHECK(ddprun::rank_waits_for_terminal(ranks.pid(at++), ddprun::Threads::kMain) == in_main);
  }
  for (const std::string& other : others) {
    INFO(other);
    static_cast<void>(ranks.start_python(begin + other + "\n"));
    if (other.find("[tty]") == std::string::npos) Stuck::await_state(ranks.pid(at), 'S');
    CHECK_FALSE(for_user(at++));
  }
}

TEST_CASE("a child that reads the terminal is one of its rank") {
  boost::asio::io_context io;
  Stuck ranks(io);
  static_cast<void>(
      ranks.start_python("import os, pty\nleader, tty = pty.openpty(); print(flush=True)\n"
                         "os.read(tty, 1) if os.fork() == 0 else os.wait()\n"));
  CHECK(eventually(
      [&] { return ddprun::rank_waits_for_terminal(ranks.pid(0), ddprun::Threads::kMain); }));
}

TEST_CASE("a process that a debugger traces is one that waits for the user") {
  boost::asio::io_context io;
  Stuck ranks(io);
  ranks.start("deadlock");
  const auto for_user = [&] {
    return ddprun::read_progress_closely({ranks.pid(0)}, 1)[0].close->for_user;
  };
  CHECK_FALSE(for_user());
  if (::ptrace(PTRACE_SEIZE, ranks.pid(0), nullptr, nullptr) != 0) {
    WARN("ptrace is denied here: not tested");
    return;
  }
  CHECK(for_user());
  ::ptrace(PTRACE_INTERRUPT, ranks.pid(0), nullptr, nullptr);
  ::waitpid(ranks.pid(0), nullptr, __WALL);
  CHECK(for_user());
  ::ptrace(PTRACE_DETACH, ranks.pid(0), nullptr, nullptr);
  CHECK_FALSE(for_user());
}

TEST_CASE("children of a rank that were killed or failed, and were not waited for, are named") {
  boost::asio::io_context io;
  Stuck ranks(io);
  static_cast<void>(ranks.start_python(
      "import os, signal, time\n"
      "for end in (0, 3, -9):\n"
      "  child = os.fork()\n"
      "  if child == 0: os.kill(os.getpid(), -end) if end < 0 else os._exit(end)\n"
      "  os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)\n"
      "print(flush=True); signal.pause()\n"));
  const StackDump dump = ranks.dump({"", "", {}});
  const auto& ended = dump.ranks.at(0).ended;
  REQUIRE(ended.size() == 2);
  CHECK(ended[0].status == ddprun::ExitStatus::exited(3));
  CHECK(ended[1].status == ddprun::ExitStatus::signaled(SIGKILL));
  CHECK(ended[1].parent == ranks.pid(0));
}

TEST_CASE("a thread in an uninterruptible wait that does not continue stays the same") {
  boost::asio::io_context io;
  Stuck ranks(io);
  ranks.start("vfork");
  const auto wait = [&] {
    return ddprun::read_progress_closely({ranks.pid(0)}, 1)[0].close->io_wait;
  };
  const auto before = wait();
  CHECK(before != 0);
  CHECK(wait() == before);
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

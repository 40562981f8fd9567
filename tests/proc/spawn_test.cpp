#include "agent/proc/spawn.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <optional>
#include <vector>

#include "agent/proc/isolation.hpp"
#include "agent/proc/program.hpp"
#include "tests/proc/test_cgroup.hpp"
#include "tests/support/descriptor_limit.hpp"
#include "tests/support/sentences.hpp"

using ddprun::DescriptorLimit;
using ddprun::ErrorKind;
using ddprun::ExitStatus;
using ddprun::test::kNoSuchFile;
using namespace proc_test;

namespace {

/// Starts, collects stdout, waits.
std::string output_of(ddprun::SpawnRequest request) {
  boost::asio::io_context io;
  Pipe pipe;
  request.stdout_fd = pipe.write_end();
  auto child = ddprun::spawn(io.get_executor(), request);
  if (!child) FAIL(child.error().sentence);
  const std::string output = pipe.read_all();
  CHECK(wait_for(io, *child) == ExitStatus::exited(0));
  return output;
}

unsigned long long mask_of(const std::string& status, const std::string& name) {
  const auto at = status.find(name + ":");
  REQUIRE(at != std::string::npos);
  return std::stoull(status.substr(at + name.size() + 1), nullptr, 16);
}

/// Puts a signal disposition in force for the time of a test.
class Disposition {
 public:
  Disposition(int number, void (*handler)(int)) : number_(number) {
    struct sigaction action = {};
    action.sa_handler = handler;
    ::sigaction(number, &action, &before_);
  }
  ~Disposition() { ::sigaction(number_, &before_, nullptr); }
  Disposition(const Disposition&) = delete;
  Disposition& operator=(const Disposition&) = delete;

 private:
  int number_;
  struct sigaction before_ = {};
};

/// The number the next descriptor gets: a limit is about numbers, not about how many are open.
int next_descriptor() {
  const int next = ::dup(1);
  ::close(next);
  return next;
}

int status_of_fork(const std::function<bool()>& body) {
  const pid_t process = ::fork();
  if (process == 0) ::_exit(body() ? 0 : 1);
  int status = 0;
  ::waitpid(process, &status, 0);
  return status;
}

}  // namespace

TEST_CASE("a worker has descriptors 0, 1 and 2 only, whatever the agent has open") {
  std::vector<int> sockets;
  for (int count = 0; count < 100; ++count) {
    sockets.push_back(::socket(AF_INET, SOCK_STREAM, 0));  // without CLOEXEC, as Asio opens them
  }
  ::close(sockets[40]);  // a gap
  const std::string seen = output_of(probe("descriptors"));
  sockets.erase(sockets.begin() + 40);
  for (const int socket : sockets) ::close(socket);
  CHECK(seen == "0 1 2 ");
}

TEST_CASE("without close_range the descriptors are marked by reading /proc") {
  const int open = ::socket(AF_INET, SOCK_STREAM, 0);
  REQUIRE(::fcntl(open, F_GETFD) == 0);
  CHECK(status_of_fork([open] {
          return ddprun::close_on_exec_by_proc() && ::fcntl(open, F_GETFD) == FD_CLOEXEC &&
                 ::fcntl(2, F_GETFD) == 0;
        }) == 0);
  ::close(open);
}

TEST_CASE("a worker leads its own POSIX session, its parent is the agent, whose death kills it") {
  CHECK(output_of(probe("ids")) ==
        "leader=1 parent=" + std::to_string(::getpid()) + " death=" + std::to_string(SIGKILL));
}

TEST_CASE("a worker starts with default dispositions and an empty mask") {
  const Disposition ignored_pipe(SIGPIPE, SIG_IGN);
  const Disposition ignored_user(SIGUSR1, SIG_IGN);
  sigset_t blocked;
  sigset_t before;
  sigset_t after;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &blocked, &before);
  auto request = probe("status");
  ::sigemptyset(&request.ignored);
  const std::string status = output_of(request);
  ::sigprocmask(SIG_SETMASK, &before, &after);
  CHECK(mask_of(status, "SigBlk") == 0);
  CHECK(mask_of(status, "SigIgn") == 0);
  CHECK(::sigismember(&after, SIGTERM) == 1);  // the agent's own mask is as it was
  CHECK(::sigismember(&after, SIGINT) == 0);
}

TEST_CASE("signals that were ignored at the start stay ignored in the worker, as nohup wants it") {
  auto request = probe("status");
  ::sigemptyset(&request.ignored);
  std::uint64_t mask = 0;
  for (const int number : {SIGHUP, SIGUSR1, SIGTERM, SIGCHLD, SIGPIPE, SIGRTMAX}) {
    ::sigaddset(&request.ignored, number);
    mask |= 1ULL << static_cast<unsigned>(number - 1);
  }
  CHECK(mask_of(output_of(request), "SigIgn") == mask);
}

TEST_CASE("environment and argv are exactly the ones asked for") {
  const std::string environment = output_of(probe("environment"));
  CHECK(environment == std::string("PATH=/usr/bin:/bin\0MARK=here\0", 29));
  auto request = shell("tr '\\0' ' ' < /proc/$$/cmdline");
  request.argv[0] = "another-name";
  CHECK_THAT(output_of(request), ContainsSubstring("another-name -c"));
}

TEST_CASE("umask and working directory are inherited") {
  const TempDir directory;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  const mode_t mask = ::umask(027);
  const std::string seen = output_of(probe("inheritance"));
  ::umask(mask);
  std::filesystem::current_path(before);
  CHECK(seen == "umask=027 cwd=" + directory.path());
}

TEST_CASE("a worker is in its cgroup from its first instruction on") {
  const TestCgroup group;
  if (!group) return;
  boost::asio::io_context io;
  Pipe pipe;
  auto request = shell("exec cat /proc/self/cgroup");
  request.stdout_fd = pipe.write_end();
  request.leaf = *group;
  auto child = ddprun::spawn(io.get_executor(), request);
  REQUIRE(child.has_value());
  REQUIRE(child->leaf().has_value());
  CHECK(child->leaf()->path() == group->path());
  CHECK_THAT(pipe.read_all(), ContainsSubstring("/" + group->name() + "\n"));
  CHECK(wait_for(io, *child) == ExitStatus::exited(0));
  CHECK(children() == 0);
}

TEST_CASE("a worker that its cgroup does not take is started without") {
  const TempDir no_cgroup;
  boost::asio::io_context io;
  for (const std::string& path : {no_cgroup.path(), no_cgroup / "absent"}) {
    auto request = probe("exit", "7");
    request.leaf.emplace(path);
    auto child = ddprun::spawn(io.get_executor(), request);
    REQUIRE(child.has_value());
    CHECK_FALSE(child->leaf().has_value());
    CHECK(wait_for(io, *child) == ExitStatus::exited(7));
  }
}

TEST_CASE("a program that cannot run in a cgroup is a sentence, and leaves nothing there") {
  const TestCgroup group;
  if (!group) return;
  boost::asio::io_context io;
  const int descriptors = open_descriptors();
  ddprun::SpawnRequest request{"/no/such/program", {"p"}, {}, 1, 2};
  request.leaf = *group;
  auto child = ddprun::spawn(io.get_executor(), request);
  REQUIRE_FALSE(child.has_value());
  CHECK_THAT(child.error().sentence, ContainsSubstring(kNoSuchFile));
  CHECK(open_descriptors() == descriptors);
  CHECK_FALSE(group->populated());
}

TEST_CASE("a worker is bound to its CPUs before its program begins, and the agent is not") {
  const ddprun::CpuSet before = ddprun::allowed_cpus();
  auto request = probe("affinity");
  CHECK(output_of(request) == std::to_string(before.size()));
  request.cpus = {*before.rbegin()};
  CHECK(output_of(request) == "1");
  CHECK(ddprun::allowed_cpus() == before);
}

TEST_CASE("a worker that cannot be bound to its CPUs is a sentence") {
  boost::asio::io_context io;
  auto request = probe("affinity");
  request.cpus = {1'000'000};
  const auto refused = ddprun::spawn(io.get_executor(), request);
  REQUIRE_FALSE(refused.has_value());
  CHECK_THAT(refused.error().sentence, ContainsSubstring("cannot be bound to its CPUs"));
}

TEST_CASE("the worker's stdout and stderr may be the agent's crosswise") {
  Pipe out;
  Pipe err;
  const int saved_out = ::dup(1);
  const int saved_err = ::dup(2);
  ::dup2(out.write_end(), 1);
  ::dup2(err.write_end(), 2);
  boost::asio::io_context io;
  auto request = shell("echo out; echo err >&2");
  request.stdout_fd = 2;
  request.stderr_fd = 1;
  auto child = ddprun::spawn(io.get_executor(), request);
  ::dup2(saved_out, 1);
  ::dup2(saved_err, 2);
  ::close(saved_out);
  ::close(saved_err);
  REQUIRE(child.has_value());
  CHECK(wait_for(io, *child) == ExitStatus::exited(0));
  CHECK(err.read_all() == "out\n");
  CHECK(out.read_all() == "err\n");
}

TEST_CASE("a program that cannot run is one sentence with path and reason, and no zombie") {
  const TempDir directory;
  boost::asio::io_context io;
  const auto refused = [&](const std::string& program) {
    const int descriptors = open_descriptors();
    auto child = ddprun::spawn(io.get_executor(), {program, {"p"}, {}, 1, 2});
    REQUIRE_FALSE(child.has_value());
    CHECK(children() == 0);
    CHECK(open_descriptors() == descriptors);
    CHECK_THAT(child.error().sentence, ContainsSubstring(program));
    return child.error();
  };
  SECTION("it does not exist") {
    const auto error = refused(directory / "absent");
    CHECK(error.kind == ErrorKind::kNotFound);
    CHECK_THAT(error.sentence, ContainsSubstring(kNoSuchFile));
  }
  SECTION("it is not executable") {
    write_file(directory / "plain", "#!/bin/sh\n");
    const auto error = refused(directory / "plain");
    CHECK(error.kind == ErrorKind::kNotExecutable);
    CHECK_THAT(error.sentence, ContainsSubstring("chmod +x"));
  }
  SECTION("its interpreter does not exist") {
    write_file(directory / "script", "#!/no/such/python -u\n", 0755);
    const auto error = refused(directory / "script");
    CHECK(error.kind == ErrorKind::kNotFound);
    CHECK_THAT(error.sentence, ContainsSubstring("interpreter /no/such/python "));
  }
  SECTION("its first line has a Windows line end") {
    write_file(directory / "script", "#!/bin/sh\r\necho\r\n", 0755);
    CHECK_THAT(refused(directory / "script").sentence, ContainsSubstring("Windows line ends"));
  }
  SECTION("it is no program at all") {
    write_file(directory / "text", "hello\n", 0755);
    const auto error = refused(directory / "text");
    CHECK(error.kind == ErrorKind::kNotExecutable);
    CHECK_THAT(error.sentence, ContainsSubstring("neither a program"));
  }
  SECTION("it is a FIFO") {
    REQUIRE(::mkfifo((directory / "fifo").c_str(), 0755) == 0);
    const auto error = refused(directory / "fifo");
    CHECK(error.kind == ErrorKind::kNotExecutable);
    CHECK_THAT(error.sentence, ContainsSubstring("not a regular file"));
  }
  SECTION("it is a directory") {
    CHECK(refused(directory.path()).kind == ErrorKind::kNotExecutable);
  }
}

TEST_CASE("a failed exec runs no exit handler and flushes nothing of the agent") {
  const TempDir directory;
  const std::string log = directory / "log";
  CHECK(status_of_fork([&] {
          FILE* const file = ::fopen(log.c_str(), "w");
          ::fputs("once", file);  // stays in the buffer
          boost::asio::io_context io;
          auto child = ddprun::spawn(io.get_executor(), {"/no/such/file", {"p"}, {}, 1, 2});
          return ::fclose(file) == 0 && !child.has_value();
        }) == 0);
  CHECK(contents(log) == "once");
}

TEST_CASE("out of descriptors while spawning is a sentence, and other workers keep running") {
  boost::asio::io_context io;
  std::vector<ddprun::Child> started;
  ddprun::Error error;
  {
    const DescriptorLimit limit(next_descriptor() + 20);
    for (int count = 0; count < 100 && error.sentence.empty(); ++count) {
      auto child = ddprun::spawn(io.get_executor(), probe("wait"));
      if (child) started.push_back(std::move(*child));
      if (!child) error = child.error();
    }
  }
  CHECK(error.kind == ErrorKind::kSystem);
  CHECK_THAT(error.sentence, ContainsSubstring("ulimit -n"));
  CHECK(started.size() > 3);
  CHECK(children() == static_cast<int>(started.size()));  // the one that failed is gone
  for (auto& child : started) {
    CHECK(alive(child.pid()));
    child.signal_group(SIGKILL);
    CHECK(wait_for(io, child) == ExitStatus::signaled(SIGKILL));
  }
  CHECK(children() == 0);
}

TEST_CASE("any number of free descriptors gives a worker or a sentence, never a leftover") {
  boost::asio::io_context io;
  const boost::asio::posix::stream_descriptor reactor(io);  // the loop's own descriptors are open
  const int before = next_descriptor();
  int refused = 0;
  int started = 0;
  const int open = open_descriptors();
  for (int spare = 0; spare < 64 && started < 3; ++spare) {
    std::optional<ddprun::Child> child;
    std::string sentence;
    {
      const DescriptorLimit limit(before + spare);  // nothing is checked within: UBSan opens a pipe
      auto spawned = ddprun::spawn(io.get_executor(), probe("wait"));
      if (spawned) child.emplace(std::move(*spawned));
      if (!spawned) sentence = spawned.error().sentence;
    }
    CHECK(sentence.empty() == child.has_value());
    CHECK(children() == (child ? 1 : 0));
    if (!child) CHECK(open_descriptors() == open);
    child ? ++started : ++refused;
    if (!child) continue;
    child->signal_group(SIGKILL);
    CHECK(wait_for(io, *child) == ExitStatus::signaled(SIGKILL));
  }
  CHECK(refused > 1);  // the report pipe needs two
  CHECK(started == 3);
}

TEST_CASE("a limit on processes is a sentence that names it") {
  CHECK(status_of_fork([] {
          const rlimit none = {1, 1};
          if (::setrlimit(RLIMIT_NPROC, &none) != 0) return false;
          if (::geteuid() == 0 && ::setuid(65533) != 0) return false;  // root has no such limit
          boost::asio::io_context io;
          auto child = ddprun::spawn(io.get_executor(), probe("exit", "0"));
          return !child && child.error().sentence.find("ulimit -u") != std::string::npos;
        }) == 0);
}

TEST_CASE("a program behind a folder that may not be entered is not called missing") {
  const TempDir directory;
  write_file(directory / "tool", "#!/bin/sh\n", 0755);
  CHECK(status_of_fork([&] {
          if (::chmod(directory.path().c_str(), 0) != 0) return false;
          if (::geteuid() == 0 && ::setuid(65533) != 0) return false;  // root may enter everything
          const auto error = ddprun::find_program(directory / "tool", "").error();
          return error.kind == ErrorKind::kNotExecutable &&
                 error.sentence.find("permission denied for a folder") != std::string::npos;
        }) == 0);
  ::chmod(directory.path().c_str(), 0700);
}

TEST_CASE("a script that is missing is told, one that cannot be looked at is left to Python") {
  const TempDir directory;
  write_file(directory / "train.py", "x");
  REQUIRE(::symlink("loop", (directory / "loop").c_str()) == 0);
  for (const char* there : {"train.py", "", "loop"}) {
    CHECK(ddprun::find_script(directory / there).has_value());
  }
  for (const char* missing : {"none.py", "train.py/below"}) {
    const auto error = ddprun::find_script(directory / missing).error();
    CHECK(error.kind == ErrorKind::kNoScript);
    CHECK(error.sentence == "cannot run " + (directory / missing) + ": " + kNoSuchFile);
  }
  CHECK_THAT(ddprun::find_script("no/such.py").error().sentence,
             ContainsSubstring("such.py: " + kNoSuchFile + " in /"));
}

TEST_CASE("find_program looks where execvp would") {
  const TempDir directory;
  ::mkdir((directory / "first").c_str(), 0755);
  ::mkdir((directory / "second").c_str(), 0755);
  write_file(directory / "first/tool", "x");
  write_file(directory / "second/tool", "#!/bin/sh\n", 0755);
  const std::string second = directory / "second/tool";
  const std::string path = (directory / "first") + ":" + (directory / "second");
  SECTION("a file that is not executable is passed over") {
    CHECK(ddprun::find_program("tool", path).value() == second);
  }
  SECTION("a name with a slash is not looked up") {
    CHECK(ddprun::find_program(second, "").value() == second);
    CHECK(ddprun::find_program(directory / "none", path).error().kind == ErrorKind::kNotFound);
    CHECK(ddprun::find_program(directory.path(), path).error().kind == ErrorKind::kNotExecutable);
  }
  SECTION("behind a symbolic link, two dots lead to where it points") {
    ::mkdir((directory / "second/below").c_str(), 0755);
    REQUIRE(::symlink((directory / "second/below").c_str(), (directory / "first/link").c_str()) ==
            0);
    const auto found = ddprun::find_program(directory / "first/link/.././tool", path);
    CHECK(contents(found.value()) == "#!/bin/sh\n");
  }
  SECTION("a path that leads nowhere is told by its own reason") {
    REQUIRE(::symlink("loop", (directory / "loop").c_str()) == 0);
    CHECK_THAT(ddprun::find_program(directory / "loop", path).error().sentence,
               ContainsSubstring("Too many levels of symbolic links"));
    CHECK_THAT(ddprun::find_program(directory / "first/tool/below", path).error().sentence,
               ContainsSubstring(kNoSuchFile));
  }
  SECTION("only a file that is not executable is found") {
    const auto error = ddprun::find_program("tool", directory / "first").error();
    CHECK(error.kind == ErrorKind::kNotExecutable);
    CHECK_THAT(error.sentence, ContainsSubstring(directory / "first/tool"));
  }
  SECTION("nothing is found") {
    const auto error = ddprun::find_program("no-such-tool", path).error();
    CHECK(error.kind == ErrorKind::kNotFound);
    CHECK_THAT(error.sentence, ContainsSubstring("no-such-tool: not found in PATH"));
  }
  SECTION("an empty PATH means the system's folders") {
    CHECK_THAT(ddprun::find_program("sh", "").value(), ContainsSubstring("/bin/sh"));
  }
}

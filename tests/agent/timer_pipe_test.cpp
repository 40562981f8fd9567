// The pipe that workers write timers to, with whatever may come through it.
#include "agent/worker_link/timer_pipe.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <thread>

#include "tests/agent/command.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/server_thread.hpp"

using namespace ddprun;
using namespace std::chrono_literals;
using ddprun::test::TemporaryDirectory;

namespace fs = std::filesystem;

namespace {

void write_to(const std::string& path, const std::string& text) {
  const int pipe = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  REQUIRE(pipe >= 0);
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = ::write(pipe, text.data() + written, text.size() - written);
    REQUIRE(count > 0);
    written += static_cast<std::size_t>(count);
  }
  ::close(pipe);
}

std::string request(int pid, const std::string& scope, double expires, int signal = SIGKILL) {
  return "{\"version\": 1, \"pid\": " + std::to_string(pid) + ", \"scope_id\": \"" + scope +
         "\", \"expiration_time\": " + std::to_string(expires) +
         ", \"signal\": " + std::to_string(signal) + "}\n";
}

/// A pipe whose only worker is this process.
class ReadPipe {
 public:
  ReadPipe() {
    auto opened = open_pipe("", dir_.file("timers"));
    REQUIRE(opened.has_value());
    TimerPipe::Workers workers;
    workers.has = [](int pid) { return pid == ::getpid(); };
    workers.expired = [this](const WorkerTimer& timer) {
      const std::lock_guard<std::mutex> lock(mutex_);
      expired_.push_back(timer.scope);
      return takes_;
    };
    pipe_ = std::make_unique<TimerPipe>(thread_.executor(), *opened, *thread_.logger(),
                                        std::move(workers));
    thread_.start();
  }
  ~ReadPipe() {
    thread_.run([this] { pipe_.reset(); });
  }
  ReadPipe(const ReadPipe&) = delete;
  ReadPipe& operator=(const ReadPipe&) = delete;

  void write(const std::string& text) { write_to(pipe_->path(), text); }
  std::vector<std::string> wait_for(std::size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kHung_ms);
    for (;;) {
      REQUIRE(std::chrono::steady_clock::now() < deadline);
      std::this_thread::yield();
      const std::lock_guard<std::mutex> lock(mutex_);
      if (expired_.size() >= count) return expired_;
    }
  }
  void take(bool takes) {
    thread_.run([&] { takes_ = takes; });
  }
  void round_runs() {
    thread_.run([this] { pipe_->round_runs(); });
  }
  /// The request is written before that.
  void stop_and_continue(Duration stopped, const std::string& written) {
    thread_.run([&] {
      if (!written.empty()) write(written);
      pipe_->extend(stopped);
    });
  }
  std::string log() { return thread_.log(); }

 private:
  TemporaryDirectory dir_;
  ServerThread thread_;
  std::unique_ptr<TimerPipe> pipe_;
  std::mutex mutex_;
  std::vector<std::string> expired_;
  bool takes_ = true;
};

using Scopes = std::vector<std::string>;

}  // namespace

TEST_CASE("a timer that expires is told, also after hostile lines, of which the first is told") {
  ReadPipe pipe;
  pipe.write("garbage\n");
  pipe.write(std::string(1 << 20, 'x') + "\n\n{}\n" + std::string(kTimerLineBytesMax + 1, '{') +
             "\n");
  pipe.write(request(1, "init", 1));
  pipe.write(request(0, "none", 1) + request(::getpid(), "no such signal", 1, 65));
  pipe.write(request(::getpid(), "mine", 1));
  CHECK(pipe.wait_for(1) == Scopes{"mine"});
  const std::string log = pipe.log();
  CHECK_THAT(log, ContainsSubstring("warning [TIMER] "));
  CHECK_THAT(log, ContainsSubstring(": garbage; others are not reported"));
  CHECK(log.find("TIMER") == log.rfind("TIMER"));
}

TEST_CASE("a timer of a process that is not a worker is refused") {
  ReadPipe pipe;
  pipe.write(request(1, "init", 1));
  pipe.write(request(::getpid(), "mine", 1));
  CHECK(pipe.wait_for(1) == Scopes{"mine"});
  CHECK_THAT(pipe.log(), ContainsSubstring("pid 1 is not a process of a worker"));
}

TEST_CASE("a timer of a process that has ended is ignored without a word") {
  ReadPipe pipe;
  pipe.write(request(0x7ffffffe, "ended", 1) + request(0x7ffffffe, "ended", -1));
  pipe.write(request(::getpid(), "mine", 1));
  CHECK(pipe.wait_for(1) == Scopes{"mine"});
  CHECK(pipe.log().empty());
}

TEST_CASE("a line of the greatest length is read") {
  ReadPipe pipe;
  std::string line = request(::getpid(), "", 1);
  const std::string scope(kTimerLineBytesMax + 1 - line.size(), 's');
  line = request(::getpid(), scope, 1);
  REQUIRE(line.size() == kTimerLineBytesMax + 1);
  pipe.write(line);
  CHECK(pipe.wait_for(1) == Scopes{scope});
  CHECK(pipe.log().empty());
}

TEST_CASE("a timer that expires before all workers run starts again then, unless it is released") {
  ReadPipe pipe;
  pipe.take(false);
  pipe.write(request(::getpid(), "one", 1) + request(::getpid(), "other", 2));
  CHECK(pipe.wait_for(2) == Scopes{"one", "other"});
  pipe.write(request(::getpid(), "one", -1, 0) + request(::getpid(), "third", 3));
  CHECK(pipe.wait_for(3).back() == "third");
  pipe.take(true);
  pipe.round_runs();
  CHECK(pipe.wait_for(5) == Scopes{"one", "other", "third", "other", "third"});
  pipe.round_runs();
  pipe.write(request(::getpid(), "last", 1));
  CHECK(pipe.wait_for(6).back() == "last");
}

TEST_CASE(
    "neither timers nor requests that wait in the pipe count a time in which workers stopped") {
  ReadPipe pipe;
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  pipe.write(request(::getpid(), "set", now + 3600) + request(::getpid(), "read", 1));
  CHECK(pipe.wait_for(1) == Scopes{"read"});
  pipe.stop_and_continue(2h, request(::getpid(), "in the pipe", now - 3600));
  pipe.write(request(::getpid(), "expired", now - 1));
  CHECK(pipe.wait_for(2) == Scopes{"read", "expired"});
  pipe.stop_and_continue(-4h, "");
  CHECK(pipe.wait_for(4) == Scopes{"read", "expired", "in the pipe", "set"});
}

TEST_CASE("a pipe is for its user alone, and one that is not read is replaced") {
  const TemporaryDirectory dir;
  const std::string path = dir.file("timers");
  REQUIRE(::mkfifo(path.c_str(), 0666) == 0);
  const auto opened = open_pipe(path, dir.file("own"));
  REQUIRE(opened.has_value());
  CHECK(opened->path == path);
  CHECK(opened->note.empty());
  struct stat facts = {};
  REQUIRE(::stat(path.c_str(), &facts) == 0);
  CHECK(S_ISFIFO(facts.st_mode));
  CHECK((facts.st_mode & 0777) == 0600);
  CHECK(dir.entries() == std::vector<std::string>{"timers"});
  const auto second = open_pipe(path, dir.file("own"));
  REQUIRE(second.has_value());
  CHECK(second->path == dir.file("own"));
  CHECK_THAT(second->note, ContainsSubstring(path + " is in use, or is not a named pipe"));
  CHECK(dir.entries() == std::vector<std::string>{"own", "timers"});
  ::close(opened->descriptor);
  ::close(second->descriptor);
}

TEST_CASE(
    "what agents left that were killed as they made the pipe is removed, and in no one's way") {
  const TemporaryDirectory dir;
  const std::string mine = std::to_string(::getpid());
  const std::vector<std::string> stay = {"other.2147483646-0a.new", "timers.1-.old", "timers.new",
                                         "timers." + mine + "-0a.new", "timers.x.new"};
  for (const std::string& name : stay) REQUIRE(::mkfifo(dir.file(name).c_str(), 0600) == 0);
  REQUIRE(::mkfifo(dir.file("timers.2147483646-0a.new").c_str(), 0600) == 0);
  const auto opened = open_pipe(dir.file("timers"), dir.file("own"));
  REQUIRE(opened.has_value());
  CHECK(opened->note.empty());
  std::vector<std::string> entries = stay;
  entries.push_back("timers");
  std::sort(entries.begin(), entries.end());
  std::vector<std::string> found = dir.entries();
  std::sort(found.begin(), found.end());
  CHECK(found == entries);
  ::close(opened->descriptor);
}

TEST_CASE("a file where the pipe is to be stays") {
  const TemporaryDirectory dir;
  const std::string path = dir.file("precious");
  fs::create_directory(path);
  const auto opened = open_pipe(path, dir.file("own"));
  REQUIRE(opened.has_value());
  CHECK(opened->path == dir.file("own"));
  CHECK(fs::is_directory(path));
  ::close(opened->descriptor);
  const auto refused = open_pipe(dir.file("missing/timers"), Error(ErrorKind::kSystem, "no place"));
  REQUIRE_FALSE(refused.has_value());
  CHECK_THAT(refused.error().sentence, ContainsSubstring("cannot make " + dir.file("missing")));
}

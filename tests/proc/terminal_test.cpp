// Output of a worker where ddprun's own streams are one file or a terminal.
#include "agent/output/terminal.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <optional>
#include <string>

#include "tests/proc/stage.hpp"

using ddprun::Route;
using ddprun::Stream;
using ddprun::Terminal;
using ddprun::WorkerOutput;
using namespace proc_test;

namespace {

winsize size_of(unsigned short lines, unsigned short columns) {
  winsize size = {};
  size.ws_row = lines;
  size.ws_col = columns;
  return size;
}

/// A terminal as a user has one, and what is seen in its window.
class Window {
 public:
  Window() {
    window_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    REQUIRE(::unlockpt(window_) == 0);
    terminal_ = ::ioctl(window_, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    REQUIRE(terminal_ >= 0);
    resize(40, 100);
  }
  ~Window() {
    ::close(terminal_);
    ::close(window_);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  void resize(unsigned short lines, unsigned short columns) const {
    const winsize size = size_of(lines, columns);
    REQUIRE(::ioctl(window_, TIOCSWINSZ, &size) == 0);
  }
  [[nodiscard]] int terminal() const { return terminal_; }
  /// Reads until what is seen ends in `end`.
  [[nodiscard]] std::string seen(Stage& stage, const std::string& end) const {
    std::string text;
    std::array<char, 65536> buffer;
    run_until(stage.io(), [&] {
      if (text.ends_with(end)) return true;  // asked twice
      const ssize_t bytes = ::read(window_, buffer.data(), buffer.size());
      if (bytes > 0) text.append(buffer.data(), static_cast<std::size_t>(bytes));
      return text.ends_with(end);
    });
    return text;
  }

 private:
  int window_ = -1;
  int terminal_ = -1;
};

const std::string kBurst =
    "i=0; while [ $i -lt 200 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done";

std::string burst(const std::string& newline) {
  std::string text;
  for (int i = 0; i < 200; ++i) {
    const std::string number = std::to_string(i) + newline;
    text += "out " + number + "err " + number;
  }
  return text;
}

}  // namespace

TEST_CASE("what a worker writes to two streams of one file keeps its order") {
  Stage stage;
  const int file = ::open(stage.path("both").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  stage.set_console(file);
  stage.start(stage.plan(Route::kInherit, Route::kPass), shell(kBurst));
  stage.finish();
  run(stage.io(), stage.consoles().out->flush(ddprun::Clock::now() + kWaitMax));
  ::close(file);
  CHECK(contents(stage.path("both")) == burst("\n"));
  CHECK(stage.output().is_one_way());
  CHECK(stage.tail() == burst("\n"));
  CHECK(stage.output().tail(Stream::kStdout).empty());
  CHECK(stage.last_written().has_value());
}

TEST_CASE("streams that are two files have two ways") {
  Stage stage;
  stage.start(stage.plan(Route::kInherit, Route::kPass), shell("echo trouble >&2"));
  stage.finish();
  CHECK_FALSE(stage.output().is_one_way());
  CHECK(stage.tail() == "trouble\n");
}

TEST_CASE("a worker has a terminal where its console is one, and its bytes are not changed") {
  Stage stage;
  const Window window;
  stage.set_console(window.terminal());
  stage.start(stage.plan(Route::kInherit, Route::kPass),
              shell("test -t 1 && test -t 2 && stty size <&2; " + kBurst +
                    "; printf 'a\\rb\\tc\\377\\001\\n\\nend'"));
  stage.finish();
  CHECK(stage.statuses.at(0) == ddprun::ExitStatus::exited(0));
  // The user's terminal makes \r\n of \n, once.
  CHECK(window.seen(stage, "end") == "40 100\r\n" + burst("\r\n") + "a\rb\tc\xff\x01\r\n\r\nend");
  CHECK(stage.tail() == "40 100\n" + burst("\n") + "a\rb\tc\xff\x01\n\nend");
}

TEST_CASE("a stderr that is a terminal is one for the worker, whatever its stdout is") {
  Stage stage;
  const Window window;
  stage.set_console(window.terminal());
  stage.start(stage.plan(Route::kDiscard, Route::kPass),
              shell("test -t 1 || test -t 2 && printf yes >&2"));
  stage.finish();
  CHECK(window.seen(stage, "yes") == "yes");
  CHECK_FALSE(stage.output().is_one_way());
}

TEST_CASE("a worker's terminal follows the size of the window") {
  Stage stage;
  const Window window;
  stage.set_console(window.terminal());
  auto output = WorkerOutput::open(stage.io().get_executor(), stage.consoles(),
                                   stage.plan(Route::kInherit, Route::kPass));
  REQUIRE(output.has_value());
  window.resize(50, 120);
  stage.consoles().terminal->resize();
  winsize size = {};
  REQUIRE(::ioctl(output->descriptor(Stream::kStdout), TIOCGWINSZ, &size) == 0);
  CHECK(size.ws_row == 50);
  CHECK(size.ws_col == 120);
}

TEST_CASE("a worker's terminal does not control it, and its end is no signal for the worker") {
  Stage stage;
  const Window window;
  stage.set_console(window.terminal());
  stage.start(stage.plan(Route::kInherit, Route::kPass),
              shell("(: </dev/tty) 2>/dev/null || echo none; "
                    "cat <&1 2>/dev/null || printf 'not for reading'"));
  stage.finish();
  CHECK(window.seen(stage, "not for reading") == "none\r\nnot for reading");
}

TEST_CASE("nothing that a worker wrote to its terminal before its exit is lost") {
  Stage stage;
  const Window window;
  stage.set_console(window.terminal());
  constexpr int kWorkers = 5;
  for (int worker = 0; worker < kWorkers; ++worker) {
    stage.start(stage.plan(Route::kInherit, Route::kPass, std::to_string(worker)),
                shell("printf '%60000d\\n' 7; kill -9 $$"));
  }
  stage.finish();
  for (int worker = 0; worker < kWorkers; ++worker) {
    CHECK(stage.tail(static_cast<std::size_t>(worker)).size() < 60000);  // a long line is cut
    CHECK(stage.tail(static_cast<std::size_t>(worker)).ends_with(" 7\n"));
  }
}

TEST_CASE("lines of workers that fill the terminal at the same time are whole") {
  Stage stage;
  const Window window;
  stage.set_console(window.terminal());
  constexpr int kWorkers = 3;
  const std::string line(70, 'x');
  for (int worker = 0; worker < kWorkers; ++worker) {
    stage.start(stage.plan(Route::kInherit, Route::kPass, std::to_string(worker)),
                shell("i=0; while [ $i -lt 3000 ]; do echo " + line + "; i=$((i+1)); done"));
  }
  std::string seen;
  const auto count = [&] { return std::count(seen.begin(), seen.end(), '\n'); };
  while (count() < kWorkers * 3000) seen += window.seen(stage, "\n");
  std::string all;
  for (int i = 0; i < kWorkers * 3000; ++i) all += line + "\r\n";
  CHECK((seen == all));
  stage.finish();
}

TEST_CASE("a process left behind that holds the terminal open delays the end only so long") {
  Stage stage;
  const Window window;
  stage.set_console(window.terminal());
  const std::string left = stage.path("pid");
  stage.start(
      stage.plan(Route::kInherit, Route::kPass),
      shell("printf trouble; setsid sh -c 'echo $$ > " + left + ".new; mv " + left + ".new " +
            left + "; exec sleep 1000' & while [ ! -e " + left + " ]; do :; done"));
  const auto before = ddprun::Clock::now();
  stage.finish(std::chrono::milliseconds(50));
  CHECK(ddprun::Clock::now() - before < kWaitMax);
  CHECK(stage.tail() == "trouble");
  CHECK(alive(std::stoi(contents(left))));
  ::kill(std::stoi(contents(left)), SIGKILL);
}

TEST_CASE("a worker's terminal leaves no descriptor behind, in the worker neither") {
  Stage stage;
  const Window window;
  stage.set_console(window.terminal());
  const int open = open_descriptors();
  {
    auto output = WorkerOutput::open(stage.io().get_executor(), stage.consoles(),
                                     stage.plan(Route::kInherit, Route::kPass));
    REQUIRE(output.has_value());
    CHECK(open_descriptors() == open + 2);
  }
  CHECK(open_descriptors() == open);
  stage.start(stage.plan(Route::kInherit, Route::kPass), probe("descriptors"));
  stage.finish();
  CHECK(window.seen(stage, " ").find_first_not_of("012 ") == std::string::npos);
}

TEST_CASE("a drawn line is replaced by the next one, and gone before anything else is written") {
  Stage stage;
  const Window window;
  stage.set_console(window.terminal());
  ddprun::ConsoleWriter& console = *stage.consoles().err;
  console.draw_line("one");
  console.draw_line("two");
  console.write("out\n");
  console.draw_line("three");
  console.write_own("own\n");
  console.draw_line("four");
  console.erase_line();
  CHECK_FALSE(console.line_is_drawn());
  console.write("bar");
  console.draw_line("never behind a worker's text");
  console.write_own("end\n");
  CHECK(window.seen(stage, "end\r\n") ==
        "\r\x1b[Kone\r\x1b[Ktwo\r\x1b[Kout\r\n\r\x1b[Kthree\r\x1b[Kown\r\n"
        "\r\x1b[Kfour\r\x1b[Kbar\r\nend\r\n");
}

TEST_CASE("the width of a window is known") {
  const Window window;
  CHECK(Terminal(window.terminal()).columns() == 100);
}

// A console that is a file: its disk may stall or be full.
#include <signal.h>
#include <sys/resource.h>

#include "tests/proc/console_support.hpp"

using ddprun::Clock;
using ddprun::ConsoleWriter;
using namespace proc_test;

TEST_CASE("a file console shares its offset with the workers that write to it") {
  boost::asio::io_context io;
  const TempDir directory;
  const int file = ::open((directory / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  auto console = writer(io, file);
  console->write("agent\n");
  run(io, console->flush(Clock::now() + kWaitMax));
  REQUIRE(::write(file, "worker\n", 7) == 7);
  console->write("agent\n");
  run(io, console->flush(Clock::now() + kWaitMax));
  ::close(file);
  CHECK(contents(directory / "out") == "agent\nworker\nagent\n");
}

TEST_CASE(
    "a console that is a file on a disk that stalls delays no other work, and loses nothing") {
  boost::asio::io_context io;
  const TempDir directory;
  REQUIRE(::mkfifo((directory / "disk").c_str(), 0600) == 0);
  // A FIFO that its writer takes for a file: a write of more than it holds stalls until it is read.
  const int reader = ::open((directory / "disk").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const int stalls = ::open((directory / "disk").c_str(), O_WRONLY | O_CLOEXEC);
  const int file = ::open((directory / "file").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  auto console = writer(io, file);
  ::dup2(stalls, file);
  const auto before = Clock::now();
  console->write(numbered(0, 3000));
  console->write_own("ddprun: own\n");
  run(io, console->flush(Clock::now() + std::chrono::milliseconds(20)));
  CHECK(Clock::now() - before < kWaitMax);
  CHECK(console->unwritten_own_lines() == "ddprun: own\n");
  std::string seen;
  std::array<char, 65536> buffer;
  run_until(io, [&] {
    const ssize_t bytes = ::read(reader, buffer.data(), buffer.size());
    if (bytes > 0) seen.append(buffer.data(), static_cast<std::size_t>(bytes));
    return seen.ends_with("ddprun: own\n");
  });
  CHECK((seen == numbered(0, 3000) + "ddprun: own\n"));
  run_until(io, [&] { return console->unwritten_own_lines().empty(); });
  for (const int descriptor : {reader, stalls, file}) ::close(descriptor);
}

TEST_CASE("a full disk behind the console is survived") {
  boost::asio::io_context io;
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  auto console = writer(io, full);
  CHECK(console->write("text\n") == ConsoleWriter::Taken::kYes);
  CHECK_FALSE(console->closed());
  CHECK_FALSE(console->full());
  ::close(full);
}

TEST_CASE(
    "a line of ddprun's own starts a new line in a file where a worker wrote an unfinished one") {
  boost::asio::io_context io;
  const TempDir directory;
  const int append = GENERATE(0, O_APPEND);
  const int file =
      ::open((directory / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | append, 0644);
  auto console = writer(io, file);
  const auto write_own = [&] {
    console->write_own("ddprun: own\n");
    run(io, console->flush(Clock::now() + kWaitMax));
  };
  write_own();
  CHECK(::write(file, "50 %", 4) == 4);  // the worker's own descriptor of the same open file
  write_own();
  write_own();
  ::close(file);
  CHECK(contents(directory / "out") == "ddprun: own\n50 %\nddprun: own\nddprun: own\n");
}

TEST_CASE("lines that a full disk does not take are counted where they are missing") {
  boost::asio::io_context io;
  const TempDir directory;
  const int file = ::open((directory / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  const int disk = ::dup(file);
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  auto console = writer(io, file);
  const auto write = [&](const std::string& text) {
    console->write(text);
    run(io, console->flush(Clock::now() + kWaitMax));
  };
  ::dup2(full, file);
  write("1\n2\n3");
  write("3\n4\n");
  console->write_own("ddprun: own\n");
  write("5\n");
  CHECK(console->missing_lines() == 5);
  CHECK(console->missing_because() == "No space left on device");
  CHECK(console->lost_own_lines() == "ddprun: own\n");
  ::dup2(disk, file);
  write("after\n");
  CHECK(console->missing_lines() == 0);
  for (const int descriptor : {file, disk, full}) ::close(descriptor);
  CHECK(contents(directory / "out") ==
        "ddprun: 5 lines are not shown here: No space left on device\nafter\n");
}

TEST_CASE("a line that a full disk takes in part ends before the message about it") {
  boost::asio::io_context io;
  const TempDir directory;
  const int file = ::open((directory / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  auto console = writer(io, file);
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit usual{};
  ::getrlimit(RLIMIT_FSIZE, &usual);
  const rlimit small{15, usual.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const auto write = [&](const std::string& text) {
    console->write(text);
    run(io, console->flush(Clock::now() + kWaitMax));
  };
  std::string lost = "4 lines are";
  SECTION("and then takes nothing of the next writes") {
    for (const char* text : {"12345678\n12345678\nabc\n", "def\n", "ghi\n"}) write(text);
  }
  SECTION("because it came in two writes, of which the second has no room") {
    write("12345678\n123456");
    write("78\n");
    lost = "1 line is";
  }
  ::setrlimit(RLIMIT_FSIZE, &usual);
  write("after\n");
  ::close(file);
  CHECK(contents(directory / "out") ==
        "12345678\n123456\nddprun: " + lost + " not shown here: File too large\nafter\n");
}

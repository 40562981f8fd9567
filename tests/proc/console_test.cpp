#include "agent/output/console.hpp"

#include <pty.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "agent/output/console_queue.hpp"
#include "tests/proc/console_support.hpp"

using ddprun::Clock;
using ddprun::ConsoleTarget;
using ddprun::ConsoleWriter;
using ddprun::TimePoint;
using namespace proc_test;

namespace {

bool nonblocking(int descriptor) {
  return (::fcntl(descriptor, F_GETFL) & O_NONBLOCK) != 0;
}

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// Whether the flush of more than a silent console takes, of which nothing may be lost, has ended.
std::shared_ptr<const bool> flush_of_silent(boost::asio::io_context& io, ConsoleWriter& console) {
  const auto flushed = std::make_shared<bool>(false);
  console.keep_all();
  console.write(numbered(0, 20000));
  boost::asio::co_spawn(io, console.flush(Clock::now()),
                        [flushed](const std::exception_ptr&) { *flushed = true; });
  return flushed;
}

}  // namespace

TEST_CASE("what a console takes is there at once, without the event loop") {
  boost::asio::io_context io;
  Pipe pipe;
  auto console = writer(io, pipe.write_end());
  console->write("now\n");
  CHECK(pipe.read_some() == "now\n");
}

TEST_CASE("the open file that workers share is never made non-blocking") {
  boost::asio::io_context io;
  Pipe pipe;
  int sockets[2];
  int terminal[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  REQUIRE(::openpty(&terminal[0], &terminal[1], nullptr, nullptr, nullptr) == 0);
  for (const int descriptor : {pipe.write_end(), sockets[1], terminal[1]}) {
    auto console = writer(io, descriptor);
    console->write(numbered(0, 20000));  // more than any of them takes
    io.restart();
    io.run_for(std::chrono::milliseconds(20));
    CHECK(console->full());
    CHECK_FALSE(nonblocking(descriptor));
  }
  for (const int descriptor : {sockets[0], sockets[1], terminal[0], terminal[1]}) {
    ::close(descriptor);
  }
}

TEST_CASE("a slow console gets everything, in order") {
  boost::asio::io_context io;
  Pipe pipe;
  auto console = writer(io, pipe.write_end());
  const std::string all = numbered(0, 10000);
  CHECK(console->write(all) == ConsoleWriter::Taken::kYes);
  std::string seen;
  run_until(io, [&] {
    seen += pipe.read_some();
    return seen.size() >= all.size();
  });
  CHECK((seen == all));
  CHECK(console->dropped_lines() == 0);
}

TEST_CASE("a slow socket gets everything, in order") {
  boost::asio::io_context io;
  int sockets[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  auto console = writer(io, sockets[1]);
  const std::string all = numbered(0, 10000);
  console->write(all);
  std::string seen;
  std::array<char, 65536> buffer;
  run_until(io, [&] {
    const ssize_t bytes = ::recv(sockets[0], buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (bytes > 0) seen.append(buffer.data(), static_cast<std::size_t>(bytes));
    return seen.size() >= all.size();
  });
  CHECK((seen == all));
  ::close(sockets[0]);
  ::close(sockets[1]);
}

TEST_CASE("a writer waits for a console that is slow, and only so long for one that is silent") {
  boost::asio::io_context io;
  Pipe pipe;
  auto console = writer(io, pipe.write_end());
  const auto before = Clock::now();  // it counts from the first write that did not fit
  while (!console->full()) console->write(numbered(0, 100));
  run(io, console->room());
  const auto waited = Clock::now() - before;
  CHECK(waited >= ddprun::kConsoleStallAtStop * 9 / 10);
  CHECK(waited < kWaitMax);
  CHECK_FALSE(console->full());  // it does not wait again while the console stays silent
  run(io, console->room());
}

TEST_CASE("a writer that may lose nothing waits for a silent console, and so does its end") {
  using OnStall = ConsoleWriter::OnStall;
  boost::asio::io_context io;
  Pipe pipe;
  auto console = writer(io, pipe.write_end());
  console->keep_all();
  std::string all;
  while (!console->full(OnStall::kWait)) {
    all += numbered(0, 100);
    console->write(numbered(0, 100));
  }
  bool has_room = false;
  bool flushed = false;
  const auto set = [](bool& flag) { return [&flag](const std::exception_ptr&) { flag = true; }; };
  boost::asio::co_spawn(io, console->room(OnStall::kWait), set(has_room));
  boost::asio::co_spawn(io, console->flush(Clock::now()), set(flushed));
  run(io, console->room());  // silent for so long
  CHECK(console->full(OnStall::kWait));
  CHECK_FALSE(has_room);
  CHECK_FALSE(flushed);
  std::string seen;
  run_until(io, [&] {
    seen += pipe.read_some();
    return flushed && seen.size() == all.size();
  });
  CHECK(has_room);
  CHECK((seen == all));
  CHECK(console->dropped_lines() == 0);
}

TEST_CASE("a stop signal ends the wait for a console that may lose nothing") {
  boost::asio::io_context io;
  Pipe pipe;
  auto console = writer(io, pipe.write_end());
  const auto flushed = flush_of_silent(io, *console);
  io.poll();
  CHECK_FALSE(*flushed);
  console->hurry();
  run_until(io, [&] { return *flushed; });
}

TEST_CASE("after a stop the end waits for a silent console until its deadline only") {
  boost::asio::io_context io;
  Pipe pipe;
  auto console = writer(io, pipe.write_end());
  const auto flushed = flush_of_silent(io, *console);
  console->stop_keeping();
  run_until(io, [&] { return *flushed; });
}

TEST_CASE("a process that had no turn for a second does not take a console that reads for silent") {
  boost::asio::io_context io;
  Pipe pipe;
  auto console = writer(io, pipe.write_end());
  console->write(numbered(0, 15'000));
  const auto over = Clock::now() + ddprun::kConsoleStallAtStop;
  CHECK(eventually([&] { return Clock::now() > over; }));
  CHECK_FALSE(pipe.read_some().empty());
  io.poll();  // the console can be written and the limit has passed, both at once
  CHECK(console->full());
}

TEST_CASE("a silent console loses whole lines, which are counted where they are missing") {
  boost::asio::io_context io;
  Pipe pipe;
  auto console = writer(io, pipe.write_end());
  int written = 0;
  while (!console->full()) {
    console->write(numbered(written, 100));
    written += 100;
  }
  run(io, console->room());
  std::uint64_t dropped = 0;
  while (dropped < 5000) {
    if (console->write(numbered(written, 100)) == ConsoleWriter::Taken::kDropped) dropped += 100;
    written += 100;
  }
  CHECK(console->dropped_lines() == dropped);
  std::string seen;
  run_until(io, [&] {  // it is read again
    seen += pipe.read_some();
    return seen.find("not shown") != std::string::npos;
  });
  console->write("after\n");
  seen += pipe.read_some();
  const auto kept = static_cast<int>(lines_in(seen)) - 2;
  CHECK(static_cast<std::uint64_t>(written - kept) == dropped);
  CHECK((seen == numbered(0, kept) + "ddprun: " + std::to_string(dropped) +
                     " lines are not shown here: the console took nothing for 1 s\nafter\n"));
}

TEST_CASE("the message about missing lines has a line of its own") {
  boost::asio::io_context io;
  Pipe pipe;
  auto console = writer(io, pipe.write_end());
  while (!console->full()) console->write(numbered(0, 100));
  run(io, console->room());
  while (console->write(numbered(0, 100) + "half") == ConsoleWriter::Taken::kYes) continue;
  std::string seen;
  run_until(io, [&] {
    seen += pipe.read_some();
    return seen.find("not shown") != std::string::npos;
  });
  CHECK_THAT(seen, ContainsSubstring("half\nddprun: 101 lines are not shown"));
}

TEST_CASE("a line of ddprun's own is not glued to a worker's unfinished one") {
  boost::asio::io_context io;
  Pipe pipe;
  auto console = writer(io, pipe.write_end());
  console->write("50 %");
  console->write_own("ddprun: own 1\n");
  console->write_own("ddprun: own 2\n");
  console->write("99 %\n");
  console->write_own("ddprun: own 3\n");
  CHECK(pipe.read_some() == "50 %\nddprun: own 1\nddprun: own 2\n99 %\nddprun: own 3\n");
}

TEST_CASE("what a silent console queues is bounded") {
  boost::asio::io_context io;
  Pipe pipe;
  auto console = writer(io, pipe.write_end());
  const std::string chunk = numbered(0, 1000);
  for (int count = 0; count < 1000; ++count) console->write(chunk);  // 60 MB, without waiting
  const std::string seen = [&] {
    std::string all;
    run_until(io, [&] {
      all += pipe.read_some();
      return all.find("not shown") != std::string::npos;
    });
    return all;
  }();
  CHECK(seen.size() < 2 * ddprun::kConsoleBacklogBytesMax);
}

TEST_CASE("a console that is closed swallows output and wakes who waits for it") {
  boost::asio::io_context io;
  Pipe pipe;
  auto console = writer(io, pipe.write_end());
  while (!console->full()) console->write(numbered(0, 100));
  pipe.close_read();
  run(io, console->room());
  CHECK(console->closed());
  const auto missing = console->missing_lines();
  CHECK(missing > 0);
  CHECK(console->write("more\n") == ConsoleWriter::Taken::kYes);
  CHECK(console->missing_lines() == missing + 1);
  CHECK(console->missing_because() == "it was closed");
  run(io, console->flush(Clock::now() + kWaitMax));
}

TEST_CASE("a console that was closed from the beginning is no error") {
  boost::asio::io_context io;
  auto console = writer(io, 900);
  CHECK(console->closed());
  CHECK(console->write("text\n") == ConsoleWriter::Taken::kYes);
}

TEST_CASE("the wait for a silent console is shorter once workers are stopped") {
  boost::asio::io_context io;
  Pipe pipe;
  auto console = writer(io, pipe.write_end());
  console->hold_workers_up_for(ddprun::kConsoleStallMax);
  while (!console->full()) console->write(numbered(0, 100));
  const auto before = Clock::now();
  console->stop_keeping();
  run(io, console->room());
  CHECK(Clock::now() - before < kWaitMax);
}

TEST_CASE("the end waits as long as a console takes something, and counts from the last of it") {
  boost::asio::io_context io;
  Pipe pipe;
  auto console = writer(io, pipe.write_end());
  const std::string all = numbered(0, 5000);
  console->write(all);
  const auto silence = std::chrono::milliseconds(1500);
  TimePoint last_read = Clock::now();
  std::string seen;
  boost::asio::steady_timer reader(io);
  std::function<void(int)> read_slowly = [&](int left) {
    if (left == 0) return;
    reader.expires_after(silence / 5);
    reader.async_wait([&, left](const auto&) {
      seen += pipe.read_at_most(8 * 1024);
      last_read = Clock::now();
      read_slowly(left - 1);
    });
  };
  read_slowly(6);
  run(io, console->flush(Clock::now(), silence));
  CHECK(seen.size() == 6 * 8 * 1024);
  CHECK(Clock::now() - last_read >= silence / 2);
  CHECK(console->missing_lines() > 0);
}

TEST_CASE("what workers leave in their pipes is kept for a console that is slow") {
  boost::asio::io_context io;
  Pipe pipe;
  auto console = writer(io, pipe.write_end());
  std::string all;
  while (all.size() < 2 * ddprun::kConsoleQueueBytesMax) {
    const std::string more = numbered(0, 1000);
    CHECK(console->write(more) == ConsoleWriter::Taken::kYes);
    all += more;
  }
  std::string seen;
  run_until(io, [&] {
    seen += pipe.read_some();
    return seen.size() >= all.size();
  });
  CHECK((seen == all));
}

TEST_CASE("a flush waits for a slow console to the end, and as long for a silent one") {
  boost::asio::io_context io;
  Pipe pipe;
  auto console = writer(io, pipe.write_end());
  const std::string all = numbered(0, 5000);
  console->write(all);
  std::string seen;
  SECTION("silent, then it reads again") {
    boost::asio::steady_timer reader(io, ddprun::kConsoleStallAtStop * 3 / 2);
    std::function<void()> read_all = [&] {
      seen += pipe.read_some();
      if (seen.size() < all.size()) boost::asio::post(io, read_all);
    };
    reader.async_wait([&](const auto&) { read_all(); });
    run(io, console->flush(Clock::now() + kWaitMax));
    CHECK(console->dropped_lines() == 0);
    seen += pipe.read_some();
    CHECK((seen == all));
  }
  SECTION("silent to the deadline") {
    const auto deadline = Clock::now() + ddprun::kConsoleStallAtStop * 3 / 2;
    run(io, console->flush(deadline));
    CHECK(Clock::now() >= deadline);
    CHECK(console->missing_lines() > 0);
  }
  SECTION("slow") {
    std::function<void()> read_a_little = [&] {  // one piece per turn of the loop
      seen += pipe.read_at_most(2000);
      if (seen.size() < all.size()) boost::asio::post(io, read_a_little);
    };
    read_a_little();
    run(io, console->flush(Clock::now() + kWaitMax));
    run_until(io, [&] { return seen.size() >= all.size(); });
    CHECK((seen == all));
  }
}

TEST_CASE("a stop signal ends the wait for a silent console, and what was not said is known") {
  boost::asio::io_context io;
  Pipe pipe;
  auto console = writer(io, pipe.write_end());
  console->write(numbered(0, 5000));
  console->write_own("ddprun: the report\n");
  boost::asio::post(io, [&] { console->hurry(); });
  run(io, console->flush(TimePoint::max()));
  CHECK(console->unwritten_own_lines() == "ddprun: the report\n");
  CHECK(pipe.read_some().find("report") == std::string::npos);
}

TEST_CASE("own lines pass a worker's output that a silent console holds up, and are not dropped") {
  boost::asio::io_context io;
  Pipe pipe;
  auto console = writer(io, pipe.write_end());
  while (!console->full()) console->write(numbered(0, 100));
  run(io, console->room());  // the console is silent now
  while (console->write(numbered(0, 100)) == ConsoleWriter::Taken::kYes) continue;
  console->write_own("ddprun: one\n");
  console->write_own("ddprun: two\n");
  std::string seen;
  run_until(io, [&] {  // it is read again
    seen += pipe.read_some();
    return seen.find("not shown") != std::string::npos;
  });
  const auto own = seen.find("\nddprun: one\nddprun: two\nline ");
  REQUIRE(own != std::string::npos);
  CHECK(own < ddprun::kConsoleQueueBytesMax / 2);  // what a pipe holds went before
}

TEST_CASE("own lines stay behind what came before them while the console flows") {
  boost::asio::io_context io;
  Pipe pipe;
  auto console = writer(io, pipe.write_end());
  const std::string all = numbered(0, 5000);
  console->write(all);
  console->write_own("ddprun: last\n");
  std::string seen;
  run_until(io, [&] {
    seen += pipe.read_some();
    return seen.size() > all.size();
  });
  CHECK((seen == all + "ddprun: last\n"));
}

TEST_CASE("lines that a FIFO takes in one piece are not cut by other writers of it") {
  boost::asio::io_context io;
  Pipe pipe;
  auto console = writer(io, pipe.write_end());
  const pid_t other = ::fork();
  if (other == 0) {  // a worker with the same stdout
    const std::string line = std::string(100, 'w') + "\n";
    for (int count = 0; count < 20000; ++count) {
      if (::write(pipe.write_end(), line.data(), line.size()) < 0) ::_exit(1);
    }
    ::_exit(0);
  }
  std::string seen;
  const std::string line = std::string(100, 'a') + "\n";
  std::string block;
  for (int count = 0; count < 500; ++count) block += line;
  int blocks = 0;
  std::size_t lines = 0;  // counted as they come: all of them at each turn would take long
  run_until(io, [&] {
    if (blocks < 40 && !console->full() && ++blocks != 0) console->write(block);
    const std::string piece = pipe.read_some();
    lines += lines_in(piece);
    seen += piece;
    return lines + console->dropped_lines() >= 40000;  // dropped where the other leaves no room
  });
  ::waitpid(other, nullptr, 0);
  std::istringstream all(seen);
  for (std::string one; std::getline(all, one);) {
    const bool drops_told = one.starts_with("ddprun: ");
    REQUIRE((one == std::string(100, 'a') || one == std::string(100, 'w') || drops_told));
  }
}

TEST_CASE("a pipe that may not be opened again is written without blocking all the same") {
  ddprun::prepare_process();
  Pipe pipe;  // belongs to the user of this test; another user cannot open it through /proc
  const pid_t process = ::fork();
  if (process == 0) {
    if (::geteuid() != 0 || ::setuid(65533) != 0) ::_exit(77);
    boost::asio::io_context io;
    ConsoleTarget target(io.get_executor(), pipe.write_end());
    if (target.kind() != ConsoleTarget::Kind::kShared) ::_exit(1);
    auto console = writer(io, pipe.write_end());
    console->write(numbered(0, 20000));
    const bool queued = console->full() && !nonblocking(pipe.write_end());
    std::string seen;
    for (int turn = 0; turn < 2000 && lines_in(seen) < 20000; ++turn) {
      io.restart();
      io.run_one_for(std::chrono::milliseconds(20));
      seen += pipe.read_some();
    }
    ::_exit(queued && seen == numbered(0, 20000) ? 0 : 2);
  }
  int status = 0;
  ::waitpid(process, &status, 0);
  if (WEXITSTATUS(status) == 77) WARN("only root can become another user: not tested");
  CHECK((status == 0 || WEXITSTATUS(status) == 77));
}

TEST_CASE("stdout and stderr that are the same file have one writer") {
  boost::asio::io_context io;
  Pipe pipe;
  Pipe other;
  const int again = ::dup(pipe.write_end());
  const auto same = ddprun::open_consoles(io.get_executor(), pipe.write_end(), again);
  CHECK(same.out == same.err);
  const auto two = ddprun::open_consoles(io.get_executor(), pipe.write_end(), other.write_end());
  CHECK(two.out != two.err);
  ::close(again);
}

TEST_CASE("a console that never answers keeps neither its writer nor the loop alive") {
  boost::asio::io_context io;
  Pipe pipe;
  auto console = writer(io, pipe.write_end());
  console->write(numbered(0, 20000));
  const std::weak_ptr<ConsoleWriter> still = console;
  console.reset();
  CHECK(still.expired());
  const auto before = Clock::now();
  io.run_for(kWaitMax);  // returns when there is no work
  CHECK(Clock::now() - before < kWaitMax);
}

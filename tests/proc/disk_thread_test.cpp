// Jobs that block for as long as a file system may: here for as long as a pipe has no bytes.
#include "net/disk_thread.hpp"

#include <signal.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <thread>

#include "tests/proc/support.hpp"

using ddprun::Clock;
using ddprun::DiskThread;
using ddprun::TimePoint;
using namespace proc_test;

namespace {

boost::asio::awaitable<void> result_into(DiskThread& thread, std::function<int()> job,
                                         TimePoint deadline, std::optional<int>& result) {
  result = co_await ddprun::run_on<int>(thread, std::move(job), deadline);
}

/// Blocks until `pipe` has a byte.
void stall(int pipe) {
  char byte = 0;
  if (::read(pipe, &byte, 1) != 1) return;
}

int threads() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    static_cast<void>(entry);
    ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("jobs run in order on another thread, and are told in order on the loop") {
  boost::asio::io_context io;
  DiskThread thread(io.get_executor());
  const auto here = std::this_thread::get_id();
  std::string ran;
  std::string told;
  for (const char job : {'a', 'b', 'c'}) {
    thread.post([&ran, job, here] { ran += std::this_thread::get_id() == here ? '?' : job; },
                [&told, job] { told += job; });
  }
  CHECK(told.empty());
  run(io, thread.idle(Clock::now() + kWaitMax));
  CHECK(ran == "abc");
  CHECK(told == "abc");
}

TEST_CASE("there is no thread before there is a job, and it takes no signals") {
  boost::asio::io_context io;
  const int before = threads();
  DiskThread thread(io.get_executor());
  CHECK(threads() == before);
  sigset_t blocked;
  sigemptyset(&blocked);
  thread.post([&blocked] { ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked); }, [] {});
  run(io, thread.idle(Clock::now() + kWaitMax));
  CHECK(sigismember(&blocked, SIGTERM) == 1);
  CHECK(sigismember(&blocked, SIGINT) == 1);
}

TEST_CASE("a write that is still to be done is known") {
  boost::asio::io_context io;
  DiskThread thread(io.get_executor());
  thread.post([] {}, [] {});
  CHECK_FALSE(thread.has_writes());
  thread.post([] {}, [] {}, DiskThread::Kind::kWrite);
  CHECK(thread.has_writes());
  run(io, thread.idle(Clock::now() + kWaitMax));
  CHECK_FALSE(thread.has_writes());
}

TEST_CASE("what is dropped is destroyed by the thread, after earlier jobs") {
  boost::asio::io_context io;
  const auto here = std::this_thread::get_id();
  std::string ran;
  DiskThread thread(io.get_executor());
  thread.post([&ran] { ran += 'a'; }, [] {});
  const auto destroyed = [&ran, here](const int* object) {
    ran += std::this_thread::get_id() == here ? '?' : 'b';
    delete object;
  };
  thread.drop(std::shared_ptr<int>(new int(0), destroyed));
  thread.post([&ran] { ran += 'c'; }, [] {});
  run(io, thread.idle(Clock::now() + kWaitMax));
  CHECK(ran == "abc");
}

TEST_CASE("a result that is not there at the deadline is not waited for") {
  boost::asio::io_context io;
  Pipe pipe;
  DiskThread thread(io.get_executor());
  std::optional<int> result = 1;
  run(io, result_into(
              thread,
              [end = pipe.read_end()] {
                stall(end);
                return 7;
              },
              Clock::now() + std::chrono::milliseconds(20), result));
  CHECK_FALSE(result.has_value());
  REQUIRE(::write(pipe.write_end(), "x", 1) == 1);
  run(io, result_into(
              thread, [] { return 8; }, TimePoint::max(), result));
  CHECK(result == 8);
}

TEST_CASE("the end waits for jobs that stall only so long, and a stop signal ends that wait") {
  boost::asio::io_context io;
  Pipe pipe;
  std::atomic<bool> ended = false;
  DiskThread thread(io.get_executor());
  const auto get_stuck = [end = pipe.read_end(), &ended] {
    stall(end);
    ended = true;
  };
  thread.post(get_stuck, [] {});
  run(io, thread.idle(Clock::now() + std::chrono::milliseconds(20)));
  boost::asio::post(io, [&] { thread.hurry(); });
  run(io, thread.idle(TimePoint::max()));
  REQUIRE(::write(pipe.write_end(), "x", 1) == 1);
  CHECK(eventually([&] { return ended.load(); }));  // before the pipe closes
}

TEST_CASE("a stuck job that holds the thread itself outlives the loop") {
  Pipe pipe;
  const auto began = std::make_shared<std::atomic<bool>>(false);
  {
    boost::asio::io_context io;
    DiskThread thread(io.get_executor());
    const auto get_stuck = [end = pipe.read_end(), began, thread] {
      *began = true;
      stall(end);
    };
    thread.post(get_stuck, [] {});
    REQUIRE(eventually([&] { return began->load(); }));
    thread.abandon();
    thread.post([began] { FAIL("run"); }, [] {});
  }
  REQUIRE(::write(pipe.write_end(), "x", 1) == 1);
  CHECK(eventually([&] { return began.use_count() == 1; }));
}

TEST_CASE("a thread that is stuck is left behind with its job, and what waits is dropped") {
  boost::asio::io_context io;
  Pipe pipe;
  const auto owned = std::make_shared<std::atomic<bool>>(false);
  {
    DiskThread thread(io.get_executor());
    const auto get_stuck = [end = pipe.read_end(), owned] {
      *owned = true;
      stall(end);
    };
    thread.post(get_stuck, [] { FAIL("told"); });
    thread.post([owned] { FAIL("run"); }, [] {});
    REQUIRE(eventually([&] { return owned->load(); }));
  }
  io.poll();
  REQUIRE(::write(pipe.write_end(), "x", 1) == 1);
  CHECK(eventually([&] { return owned.use_count() == 1; }));
}

// Several processes that bind one port: which of them listens, and how the kernel behaves.
#include "net/listen.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <future>
#include <utility>

#include "base/clock.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/free_port.hpp"

using namespace ddprun;

namespace asio = boost::asio;

namespace {

int refusals = 0;  // listen() calls that will still fail

const auto kLoopback = asio::ip::address_v4::loopback();

}  // namespace

/// Replaces the C library's listen(): the next `refusals` calls fail as if another process called
/// it at the same time, which two real processes achieve in one of a thousand attempts at best.
extern "C" int listen(int socket, int backlog) noexcept {
  if (refusals == 0) return static_cast<int>(::syscall(SYS_listen, socket, backlog));
  --refusals;
  errno = EADDRINUSE;
  return -1;
}

TEST_CASE("listen() on a free port succeeds although the kernel refuses it at first") {
  asio::io_context io;
  const auto port = test::free_port();
  refusals = 3;
  const auto listener = net::listen(io.get_executor(), kLoopback, port);
  CHECK(refusals == 0);
  REQUIRE(listener.has_value());
  CHECK(listener->local_endpoint().port() == port);
}

TEST_CASE("a port that stays refused is reported in use after a bounded number of attempts") {
  asio::io_context io;
  refusals = 1'000'000;
  const auto listener = net::listen(io.get_executor(), kLoopback, test::free_port());
  CHECK(std::exchange(refusals, 0) > 999'000);
  REQUIRE_FALSE(listener.has_value());
  CHECK(listener.error().kind == ErrorKind::kPortTaken);
}

TEST_CASE("exactly one of several simultaneous listeners gets the port") {
  constexpr int kRounds = 3000;
  // If both threads share a processor, each round costs a scheduler time slice.
  const TimePoint end = Clock::now() + std::chrono::seconds(5);
  const auto port = test::free_port();
  std::barrier together(2);
  std::array<int, 2> got{};
  int round = 0;
  int odd = 0;
  const auto contend = [&](std::size_t self) {
    asio::io_context io(1);
    while (true) {
      if (self == 0 && (++round > kRounds || Clock::now() > end)) round = 0;
      together.arrive_and_wait();
      if (round == 0) return;
      auto listener = net::listen(io.get_executor(), kLoopback, port);
      got[self] = listener.has_value() ? 1 : 0;
      together.arrive_and_wait();
      if (self == 0 && got[0] + got[1] != 1) ++odd;
    }
  };
  auto other = std::async(std::launch::async, contend, 1);
  contend(0);
  other.wait();
  CHECK(odd == 0);
}

// Name lookup off the io thread, and several addresses tried in parallel.
#include "net/connect.hpp"

#include <future>

#include "net/listen.hpp"
#include "tests/client/scene.hpp"
#include "tests/support/stale_event.hpp"

using namespace ddprun;
using namespace ddprun::net;
using ddprun::client::kHung;
using ddprun::client::Listener;
using ddprun::client::runs_until;
using std::chrono::milliseconds;

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

/// A name service that answers when the test lets it.
struct SlowService {
  std::promise<void> answer;
  std::shared_future<void> answered = answer.get_future().share();
  std::shared_ptr<std::atomic<int>> asked = std::make_shared<std::atomic<int>>(0);
  Lookup resolve_blocking() {
    return [may = answered, count = asked](const std::string&) -> Result<Addresses> {
      ++*count;
      may.wait_for(kHung);
      return Addresses{asio::ip::make_address("10.1.2.3")};
    };
  }
};

struct Outcome {
  std::optional<Result<Connected>> result;
  Connector::Done take() {
    return [this](Result<Connected> outcome) { result.emplace(std::move(outcome)); };
  }
};

std::string tried(asio::io_context& io, const std::vector<tcp::endpoint>& where, Duration limit) {
  Outcome outcome;
  std::make_shared<Connector>(io.get_executor(), where, Clock::now() + limit, outcome.take())
      ->start();
  REQUIRE(runs_until(io, [&] { return outcome.result.has_value(); }));
  if (!*outcome.result) return outcome.result->error().sentence;
  const Connected& connected = **outcome.result;
  CHECK(connected.peer == connected.socket.remote_endpoint());
  return to_text(connected.peer);
}

}  // namespace

TEST_CASE("literals and localhost need no lookup, any other name does") {
  CHECK(addresses_without_lookup("10.0.4.11")->front().to_string() == "10.0.4.11");
  CHECK(addresses_without_lookup("fe80::1")->front().is_v6());
  CHECK(addresses_without_lookup("localhost")->size() == 2);
  CHECK_FALSE(addresses_without_lookup("gpu-01").has_value());
  CHECK_FALSE(addresses_without_lookup("10.0.4").has_value());
}

TEST_CASE("a name is resolved off the io thread, which keeps running") {
  asio::io_context io;
  SlowService service;
  Resolver resolver(io.get_executor(), "gpu-01", service.resolve_blocking());
  std::optional<Result<Addresses>> result;
  resolver.start(Clock::now() + kHung,
                 [&](Result<Addresses> outcome) { result = std::move(outcome); });
  bool posted = false;
  asio::post(io, [&] { posted = true; });
  CHECK(runs_until(io, [&] { return posted; }));
  CHECK_FALSE(result.has_value());
  service.answer.set_value();
  REQUIRE(runs_until(io, [&] { return result.has_value(); }));
  CHECK(result->value().front().to_string() == "10.1.2.3");
}

TEST_CASE("a lookup that hangs fails at the deadline, and the next attempt joins it") {
  asio::io_context io;
  SlowService service;
  Resolver resolver(io.get_executor(), "gpu-01", service.resolve_blocking());
  std::optional<Result<Addresses>> result;
  const auto take = [&](Result<Addresses> outcome) { result = std::move(outcome); };
  resolver.start(Clock::now() + milliseconds(20), take);
  REQUIRE(runs_until(io, [&] { return result.has_value(); }));
  CHECK_THAT(result->error().sentence, ContainsSubstring("gpu-01"));
  result.reset();
  resolver.start(Clock::now() + kHung, take);
  service.answer.set_value();
  REQUIRE(runs_until(io, [&] { return result.has_value(); }));
  CHECK(result->has_value());
  CHECK(*service.asked == 1);
  result.reset();
  resolver.start(Clock::now() + kHung, take);  // answers are not kept
  REQUIRE(runs_until(io, [&] { return result.has_value(); }));
  CHECK(*service.asked == 2);
}

TEST_CASE("a cancelled or destroyed resolver calls nothing back and waits for no lookup") {
  asio::io_context io;
  SlowService service;
  bool called = false;
  auto resolver =
      std::make_unique<Resolver>(io.get_executor(), "gpu-01", service.resolve_blocking());
  resolver->start(Clock::now() + kHung, [&](Result<Addresses>) { called = true; });
  SECTION("cancelled first") {
    resolver->cancel();
  }
  SECTION("destroyed at once") {}
  resolver.reset();
  CHECK(runs_until(io, [&io] { return io.stopped(); }));
  CHECK_FALSE(called);
  service.answer.set_value();
}

TEST_CASE("an event of a descriptor closed before is not taken for the answer of a lookup") {
  asio::io_context io;
  SlowService service;
  Resolver resolver(io.get_executor(), "gpu-01", service.resolve_blocking());
  std::optional<Result<Addresses>> result;
  test::StaleEvent stale(io);
  bool started = false;
  stale.async_wait([&](const boost::system::error_code&) {
    stale.close();
    resolver.start(Clock::now() + kHung,
                   [&](Result<Addresses> outcome) { result = std::move(outcome); });
    started = true;
  });
  REQUIRE(runs_until(io, [&] { return started; }));
  for (int events = 0; events < 3; ++events) io.run_one_for(milliseconds(50));
  CHECK_FALSE(result.has_value());
  service.answer.set_value();
  REQUIRE(runs_until(io, [&] { return result.has_value(); }));
  CHECK(result->has_value());
}

TEST_CASE("a lookup that throws becomes an error that contains the name") {
  asio::io_context io;
  Resolver resolver(io.get_executor(), "gpu-01", [](const std::string&) -> Result<Addresses> {
    throw std::runtime_error("no memory");
  });
  std::optional<Result<Addresses>> result;
  resolver.start(Clock::now() + kHung,
                 [&](Result<Addresses> outcome) { result = std::move(outcome); });
  REQUIRE(runs_until(io, [&] { return result.has_value(); }));
  CHECK(result->error().sentence == "cannot resolve gpu-01: no memory");
}

TEST_CASE(
    "addresses alternate between families, that of the first address first, up to a maximum") {
  const auto address = [](const char* text) { return asio::ip::make_address(text); };
  const auto order =
      interleave_families({address("10.0.0.1"), address("10.0.0.2"), address("::1")}, 5);
  REQUIRE(order.size() == 3);
  CHECK(to_text(order[0]) == "10.0.0.1:5");
  CHECK(to_text(order[1]) == "[::1]:5");
  CHECK(to_text(order[2]) == "10.0.0.2:5");
  CHECK(interleave_families(Addresses(100, address("10.0.0.1")), 5).size() ==
        kConnectCandidatesMax);
}

TEST_CASE("a silent address delays the next one by the stagger only") {
  asio::io_context io;
  Listener silent(io);
  silent.fall_silent();
  Listener good(io);
  const TimePoint begin = Clock::now();
  CHECK(tried(io, {silent.where(), good.where()}, kHung) == to_text(good.where()));
  CHECK(Clock::now() - begin >= kConnectStagger);
}

TEST_CASE("an address that refuses the connection delays nothing") {
  asio::io_context io;
  Listener good(io);
  const tcp::endpoint bad(asio::ip::address_v4::loopback(), test::free_port());
  CHECK(tried(io, {bad, bad, bad, good.where()}, kHung) == to_text(good.where()));
}

TEST_CASE("at the deadline the error lists every address with its outcome") {
  asio::io_context io;
  Listener silent(io);
  silent.fall_silent();
  const tcp::endpoint bad(asio::ip::address_v4::loopback(), test::free_port());
  const std::string message = tried(io, {bad, silent.where()}, milliseconds(500));
  CHECK(message ==
        to_text(bad) + ": connection refused; " + to_text(silent.where()) + ": no answer");
}

TEST_CASE("a cancelled connector calls nothing back and leaves no pending operation") {
  asio::io_context io;
  Listener silent(io);
  silent.fall_silent();
  Outcome outcome;
  const auto connector =
      std::make_shared<Connector>(io.get_executor(), std::vector<tcp::endpoint>{silent.where()},
                                  Clock::now() + kHung, outcome.take());
  connector->start();
  io.run_one();
  connector->cancel();
  CHECK(runs_until(io, [&io] { return io.stopped(); }));
  CHECK_FALSE(outcome.result.has_value());
}

TEST_CASE("a socket that TCP connected to itself is recognized") {
  asio::io_context io;
  tcp::socket alone(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  const tcp::endpoint self = alone.local_endpoint();
  alone.connect(self);
  CHECK(is_self_connection(alone, self));
  Listener listener(io);
  tcp::socket other(io);
  other.connect(listener.where());
  CHECK_FALSE(is_self_connection(other, listener.where()));
}

#include "agent/coordinate/endpoint_links.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>

#include "tests/support/catch.hpp"

using namespace ddprun;
using boost::asio::ip::tcp;

TEST_CASE("a notice to a rival ends with its link, and begins no other one") {
  boost::asio::io_context io;
  tcp::acceptor closed(io);
  closed.open(tcp::v4());
  closed.bind({boost::asio::ip::address_v4::loopback(), 0});
  LaunchConfig config;
  config.rendezvous.emplace();
  int ends = 0;
  EndpointNotice notice(
      io.get_executor(), config, CoordinatorAddress{"127.0.0.1", closed.local_endpoint().port()},
      [] { return std::optional<protocol::Lead>(); }, nullptr, [&ends] { ++ends; });
  io.run_for(2 * kNoticeInterval);
  CHECK(ends == 1);
  CHECK(notice.has_ended());
  CHECK(io.stopped());  // nothing is left to wait for
}

// The loop of a busy process finds several timers expired at once.
TEST_CASE("a notice may end when its next attempt is due already") {
  boost::asio::io_context io;
  tcp::acceptor bound(io);  // and does not listen
  bound.open(tcp::v4());
  bound.bind({boost::asio::ip::address_v4::loopback(), 0});
  LaunchConfig config;
  config.rendezvous.emplace();
  bool attempted = false;
  const auto begin = Clock::now();
  auto notice = std::make_unique<EndpointNotice>(
      io.get_executor(), config, CoordinatorAddress{"127.0.0.1", bound.local_endpoint().port()},
      [&attempted]() -> std::optional<protocol::Lead> {
        attempted = true;
        return std::nullopt;
      });
  io.run_until(begin + kNoticeInterval / 2);
  boost::asio::steady_timer end(io, begin + kNoticeInterval * 3 / 4);
  end.async_wait([&notice](const boost::system::error_code&) { notice.reset(); });
  while (Clock::now() < begin + kNoticeInterval * 3 / 2) {
  }
  io.run_until(Clock::now() + kNoticeInterval);
  CHECK(notice == nullptr);
  CHECK_FALSE(attempted);
}

// EndpointNotice: while this node coordinates the run in the place of the endpoint's, it tells so
// to whatever coordinator of the run is started again there, which then sends its agents here
// (docs/FAILOVER.md). Thread rule: the io_context's thread. Ownership: config outlives it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <memory>

#include "agent/core/launch_config.hpp"
#include "base/clock.hpp"
#include "rendezvous/client/connection.hpp"

namespace ddprun {

// There is no other way to notice that a server listens there again.
inline constexpr Duration kNoticeInterval = std::chrono::milliseconds(500);

class EndpointNotice {
 public:
  EndpointNotice(boost::asio::any_io_executor executor, const LaunchConfig& config);

  /// The run is coordinated at this port of this machine.
  void begin(std::uint16_t port);
  /// The newest round that this node has been told of.
  void at(Round round) { round_ = round; }

 private:
  void on(const client::Event& event);
  void attempt();

  boost::asio::any_io_executor executor_;
  const LaunchConfig& config_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<client::Connections> link_;
  client::LinkId link_id_ = 0;
  Round round_{0};
  std::uint16_t port_ = 0;
};

}  // namespace ddprun

// OtherEndpoints: in a run with several endpoints, rank 0's node tells the coordinators at all
// others where the run is coordinated, so that nodes that come there are sent on
// (docs/FAILOVER.md). Thread rule: the io_context's thread. Ownership: config outlives it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "agent/coordinate/endpoint_notice.hpp"
#include "rendezvous/client/membership.hpp"

namespace ddprun {

class OtherEndpoints {
 public:
  OtherEndpoints(boost::asio::any_io_executor executor, const LaunchConfig& config)
      : executor_(std::move(executor)), config_(config) {}

  /// What this node may tell now; nothing, if another one does or none can.
  void tell(const std::optional<client::Membership::Led>& led);

 private:
  boost::asio::any_io_executor executor_;
  const LaunchConfig& config_;
  std::optional<client::Membership::Led> led_;
  std::vector<std::unique_ptr<EndpointNotice>> notices_;
};

}  // namespace ddprun

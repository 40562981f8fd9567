// EndpointNotice: while the run is coordinated in another place than this one, it tells so to
// whatever coordinator of the run is here again, or still: where the run's endpoint is, or where
// the run was coordinated before. That one then sends its agents there (docs/FAILOVER.md). Thread
// rule: the io_context's thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "agent/config/launch_config.hpp"
#include "base/clock.hpp"
#include "rendezvous/client/connection.hpp"

namespace ddprun {

// There is no other way to notice that a server listens there again.
inline constexpr Duration kNoticeInterval = std::chrono::milliseconds(500);
/// A notice on a link that stays open, by which a host that is gone is noticed.
inline constexpr Duration kReminderInterval = std::chrono::seconds(2);
/// Of so many notices at least one is answered, or the host is not the one that it was: a host that
/// loses its power closes no connection.
inline constexpr int kUnansweredMax = 4;

class EndpointNotice {
 public:
  /// What is to be told; none: nothing now.
  using Says = std::function<std::optional<protocol::Lead>()>;
  /// Another coordinator of the run is there. Not called from inside a call here.
  using Hears = std::function<void(const protocol::Moved&)>;
  /// Its link is down, or says nothing, and no other one follows. Not called from inside a call
  /// here.
  using Ends = std::function<void()>;
  /// Without `ends` it connects again for ever.
  EndpointNotice(boost::asio::any_io_executor executor, const LaunchConfig& config,
                 CoordinatorAddress where, Says says, Hears hears = {}, Ends ends = {});

  [[nodiscard]] bool has_ended() const { return has_ended_; }

 private:
  void on(const client::Event& event);
  void attempt();
  void tell();
  void again();
  void end();

  Says says_;
  Hears hears_;
  Ends ends_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<client::Connections> link_;
  client::LinkId link_id_ = 0;
  bool is_up_ = false;
  bool has_ended_ = false;
  int unanswered_ = 0;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace ddprun

// Standby: this node's part in the fail-over of the coordinator (docs/FAILOVER.md): a port where it
// would coordinate the run, and the coordinator there when it is this node's turn. When that is the
// case is decided by client::Membership. Thread rule: the io_context's thread. Ownership: config
// and user outlive it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "agent/coordinate/coordinator_seat.hpp"
#include "agent/coordinate/endpoint_notice.hpp"
#include "rendezvous/client/membership.hpp"

namespace ddprun {

class StandbyUser {
 public:
  /// Whether a coordinator answers this node.
  [[nodiscard]] virtual bool has_coordinator() const = 0;
  /// The candidate has no majority. Not called from inside a call here.
  virtual void abdicated(const std::string& reason) = 0;
  /// A coordinator that this object attends has let the others find another one, because this node
  /// leaves. Not called from inside a call here.
  virtual void resigned() = 0;

 protected:
  ~StandbyUser() = default;
};

class Standby {
 public:
  Standby(boost::asio::any_io_executor executor, const LaunchConfig& config, OpenCoordinator open,
          StandbyUser& user);
  ~Standby();
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;

  /// Listens: the port, or 0 if this machine has none left.
  [[nodiscard]] std::uint16_t listen();
  /// What came to the membership: who connects here is turned away while the coordinator answers.
  void observe(const client::Event& event);
  /// Opens the candidate where this node listens.
  [[nodiscard]] Result<void> coordinate(const client::Coordinate& order);
  /// It closes, and this node listens as before.
  void withdraw();
  /// The same, and it does not listen any more.
  void resign();
  /// The candidate has a majority: it stays. `former`: coordinators that may not know of it,
  /// besides that of the endpoint.
  [[nodiscard]] std::unique_ptr<LocalCoordinator> lead(const std::vector<client::Place>& former);
  /// A coordinator of this process, which others reach at `port`. A leader that began apart and
  /// does not know that it is to yield to this one is told so; user.resigned() follows if this one
  /// resigns. It lives as long as this object, or until withdraw() or resign().
  void attend(LocalCoordinator& coordinator, std::uint16_t port);
  [[nodiscard]] bool is_candidate() const { return seat_.coordinator() != nullptr; }

 private:
  struct Leader {
    const LocalCoordinator* coordinator;
    std::uint16_t port;
  };
  void tell(CoordinatorAddress where, Leader leader);
  void tell_rival(CoordinatorAddress where, Leader leader);
  [[nodiscard]] std::optional<protocol::Lead> says(const Leader& leader) const;
  [[nodiscard]] bool serve_host_entry();
  void turn_away();
  void turned_away(const boost::system::error_code& why);

  boost::asio::any_io_executor executor_;
  const LaunchConfig& config_;
  StandbyUser& user_;
  CoordinatorSeat seat_;
  CoordinatorSeat entry_;  // sends nodes that know of no other place to seat_'s
  std::vector<std::unique_ptr<EndpointNotice>> notices_;  // while this node coordinates
  /// Leaders that began apart. One that is still to be told when its link ends shows up again.
  struct Rival {
    CoordinatorAddress where;
    std::unique_ptr<EndpointNotice> notice;
  };
  std::vector<Rival> rivals_;
  std::uint16_t port_ = 0;
  bool turns_away_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // for what is posted
};

}  // namespace ddprun

// EndpointSeat: the coordinators that this process may have in a run without etcd: the one at the
// run's endpoint, if that is here, and, where nodes follow each other (docs/FAILOVER.md), the one
// at the port where this node stands by, when it is this node's turn. When that is the case is
// decided by client::Membership. Thread rule: the io_context's thread. Ownership: config and user
// outlive it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "agent/coordinate/coordinator_port.hpp"
#include "agent/coordinate/endpoint_links.hpp"
#include "rendezvous/client/membership.hpp"

namespace ddprun {

class EndpointSeat {
 public:
  /// `here`: at the endpoint; null: it is elsewhere, and `make` (may be empty) is asked again as
  /// long as no coordinator answers. `open` makes the one that follows another, where one may.
  EndpointSeat(boost::asio::any_io_executor executor, const LaunchConfig& config, Coordinator here,
               MakeCoordinator make, OpenCoordinator open, SeatUser& user);
  ~EndpointSeat();
  EndpointSeat(const EndpointSeat&) = delete;
  EndpointSeat& operator=(const EndpointSeat&) = delete;

  /// Null: the coordinator is elsewhere.
  [[nodiscard]] coordinator::Server* here() const;
  /// The same, also if it sends its nodes to another one.
  [[nodiscard]] coordinator::Server* any() const { return here_.get(); }
  /// Listens where this node stands by: the port, or 0 if it does not, or no port is left.
  [[nodiscard]] std::uint16_t stand_by();
  /// No coordinator has answered: whether this process has the one of the endpoint from now on. The
  /// port may have been in other hands when it started: those of an earlier run that was still
  /// ending, for example.
  [[nodiscard]] bool host();
  /// Begins to find out whether other nodes can reach the coordinator here.
  void check_endpoint();
  /// A round starts: the other nodes are here.
  void end_checks() { checks_.clear(); }
  /// Takes what came to the membership. While a coordinator answers this node turns away others
  /// that connect where it stands by; its own candidate, if that answers, leads the run.
  void observe(const client::Event& event);
  /// Opens the candidate where this node stands by.
  [[nodiscard]] Result<void> coordinate(const client::Coordinate& order);
  /// It closes, and this node stands by as before.
  void withdraw();

 private:
  struct Leader {
    const coordinator::Server* coordinator;
    std::uint16_t port;
  };
  [[nodiscard]] bool stands_by() const { return config_.rendezvous->stands_by; }
  [[nodiscard]] bool is_candidate() const { return standby_.coordinator() != nullptr; }
  void check_given_address();
  void check_namesake(const std::string& literal);
  void join_other(const CoordinatorAddress& other);
  void listen();
  void turn_away();
  void turned_away(const boost::system::error_code& why);
  void lead();
  [[nodiscard]] bool serve_host_entry();
  void close();
  void resigned();
  // Other coordinators learn of the one here.
  void attend(coordinator::Server& coordinator, std::uint16_t port);
  void tell(CoordinatorAddress where, Leader leader);
  void tell_rival(CoordinatorAddress where, Leader leader);
  [[nodiscard]] std::optional<protocol::Lead> says(const Leader& leader) const;
  /// Calls `what` later, unless this object is gone by then.
  void post(std::function<void()> what);

  boost::asio::any_io_executor executor_;
  const LaunchConfig& config_;
  SeatUser& user_;
  Coordinator here_;
  MakeCoordinator make_;
  Coordinator at_endpoint_;  // that sends its agents elsewhere, while this node leads
  bool leads_ = false;       // here_ is where this node stood by
  CoordinatorPort standby_;
  CoordinatorPort entry_;  // sends nodes that know of no other place to standby_'s
  std::vector<std::unique_ptr<EndpointNotice>> notices_;  // while this node coordinates
  /// Leaders that began apart. One that is still to be told when its link ends shows up again.
  struct Rival {
    CoordinatorAddress where;
    std::unique_ptr<EndpointNotice> notice;
  };
  std::vector<Rival> rivals_;
  std::vector<std::unique_ptr<EndpointCheck>> checks_;  // none: there is nothing to find out
  std::uint16_t port_ = 0;
  bool turns_away_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // for what is posted
};

}  // namespace ddprun

// ElectedSeat: which node of the run coordinates, as etcd says, and the coordinator itself while
// this node is the one. Thread rule: the io_context's thread. Ownership: config and user outlive
// it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>

#include "agent/config/launch_config.hpp"
#include "agent/coordinate/coordinator_port.hpp"
#include "rendezvous/etcd/elector.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace ddprun {

class ElectedSeat final : private etcd::ElectorUser {
 public:
  ElectedSeat(boost::asio::any_io_executor executor, const LaunchConfig& config,
              const protocol::Hello& hello, OpenCoordinator open, SeatUser& user);

  void start() { elector_.start(); }
  /// Null unless it is in this process.
  [[nodiscard]] coordinator::Server* here() const { return port_.coordinator(); }
  /// Another node is elected at once, if the run lives.
  [[nodiscard]] boost::asio::awaitable<void> resign() { return elector_.resign(); }

 private:
  [[nodiscard]] Result<etcd::Leader> offer(const std::string& own_address) override;
  void withdraw() override { port_.close(); }
  void lead(etcd::Revision term, const RunRecord& record) override;
  void recorded(const RunRecord& record) override;
  void act() override;
  void step_down() override;
  void follow(const std::optional<etcd::Leader>& leader) override;
  void await_etcd() override;
  void note(const std::string& text) override { user_.seat_note(text); }
  void bar(const std::string& why) override { user_.feed(client::ElectionBarred{why}); }
  void refuse(const std::string& why) override { user_.fail({ErrorKind::kUsage, why}); }

  const LaunchConfig& config_;
  SeatUser& user_;
  CoordinatorPort port_;
  CoordinatorAddress offered_;
  etcd::Elector elector_;
};

}  // namespace ddprun

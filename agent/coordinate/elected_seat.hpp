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

/// The agent, as the election sees it.
class ElectionNode {
 public:
  /// The coordinator is at this address, or nowhere, for this reason.
  virtual void coordinator_at(const std::optional<CoordinatorAddress>& where, bool here,
                              const std::string& why) = 0;
  /// `what` does not answer: "etcd h1:2379".
  virtual void coordinator_is_awaited(const std::string& what) = 0;
  virtual void election_note(const std::string& text) = 0;
  virtual void election_failed(const std::string& why) = 0;
  /// No node coordinates the run, and this one asks for other terms.
  virtual void election_barred(const std::string& why) = 0;

 protected:
  ~ElectionNode() = default;
};

class ElectedSeat final : private etcd::ElectorUser {
 public:
  ElectedSeat(boost::asio::any_io_executor executor, const LaunchConfig& config,
              const protocol::Hello& hello, OpenCoordinator open, ElectionNode& node);

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
  void note(const std::string& text) override { node_.election_note(text); }
  void bar(const std::string& why) override { node_.election_barred(why); }
  void refuse(const std::string& why) override;

  const LaunchConfig& config_;
  ElectionNode& node_;
  CoordinatorPort port_;
  CoordinatorAddress offered_;
  etcd::Elector elector_;
};

}  // namespace ddprun

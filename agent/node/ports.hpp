// NodePorts: what NodeDriver needs done: the link to the coordinator, the stores of rounds, the
// workers, a timer, and lines for the user. The agent implements it with sockets and processes, the
// simulator with its world. Thread rule: the driver's thread.
#pragma once

#include <cstdint>
#include <string>

#include "agent/config/received_signal.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "rendezvous/client/membership.hpp"

namespace ddprun {

/// No call may end the driver or its owner. What happens later is fed back to the driver: LinkUp,
/// LinkDown, Incoming, StoreIdle, GroupQuiet and Tick with feed(), the rest with the functions
/// named here.
class NodePorts {
 public:
  NodePorts() = default;
  NodePorts(const NodePorts&) = delete;
  NodePorts& operator=(const NodePorts&) = delete;
  virtual ~NodePorts() = default;

  [[nodiscard]] virtual TimePoint now() const = 0;

  /// Before each attempt to connect, as long as no coordinator has answered: whether this process
  /// has just become its host.
  [[nodiscard]] virtual bool host_coordinator() = 0;
  virtual void connect(client::LinkId link, const std::optional<client::Place>& to) = 0;
  /// Opens a candidate where this node stands by; Abdicated follows with feed() if it gets no
  /// majority.
  [[nodiscard]] virtual Result<void> coordinate(const client::Coordinate& order) = 0;
  virtual void withdraw_coordinator() = 0;
  virtual void close_link(client::LinkId link) = 0;
  virtual void send(client::LinkId link, const protocol::Message& message) = 0;

  /// Listens for the next round's store: its port.
  [[nodiscard]] virtual Result<std::uint16_t> open_store() = 0;
  /// What open_store() opened becomes the store of this round, for nodes with these addresses;
  /// empty: for all.
  [[nodiscard]] virtual Result<void> serve_store(Round round,
                                                 const std::vector<std::string>& peers) = 0;
  /// StoreIdle follows, later, when the last client has gone.
  virtual void release_store(Round round) = 0;
  virtual void close_store(Round round) = 0;

  /// Starts the workers: what local::Tell has follows with feed(), or fail_to_spawn(), and
  /// in every case group_over(), later. After an error nothing follows.
  [[nodiscard]] virtual Result<void> start_group(const protocol::StartRound& round) = 0;
  /// The round is over elsewhere. Only while a group lives, like the next two.
  virtual void stop_group(const client::StopGroup& order) = 0;
  /// ddprun got this stop signal: so do the workers, and a second one kills them.
  virtual void pass_stop_signal(int signal) = 0;
  /// Any other signal: the workers that run get it once.
  virtual void deliver_signal(const client::DeliverSignal& deliver) = 0;
  /// The workers of all nodes are quiet: GroupQuiet follows, or GroupFailed.
  virtual void check_hang(const client::CheckHang& order) = 0;
  /// Whether a worker failed and GroupFailed is still to come.
  [[nodiscard]] virtual bool failure_is_pending() const = 0;

  /// Replaces the timer before it; Tick follows.
  virtual void arm_timer(TimePoint deadline) = 0;
  /// The membership took an event, and its actions follow; for observers.
  virtual void on_step() {}

  // Lines for the user.
  virtual void log_note(const std::string& text) = 0;
  /// A failure on this node that is in no report.
  virtual void log_death(const std::string& line) = 0;
  /// A single node starts its workers again.
  virtual void log_restart(const std::string& reason) = 0;
  /// A stop signal came while no worker runs.
  virtual void log_leaving(const ReceivedSignal& signal) = 0;
  /// An error of this node's own: returns the exit code.
  [[nodiscard]] virtual int report_error(const Error& error) = 0;
  /// Nothing is left to do: the driver's end() is set.
  virtual void end() = 0;
};

}  // namespace ddprun

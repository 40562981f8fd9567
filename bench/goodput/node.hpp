// A node of the simulated cluster: the real ddprun::Node, and what it orders is modelled.
#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "agent/node/node.hpp"
#include "agent/node/pump.hpp"
#include "bench/goodput/cluster.hpp"

namespace ddprun::bench {

class Cluster::Node {
 public:
  Node(Cluster& cluster, int id, int process);

  void begin();
  /// From the coordinator, in order.
  void deliver_at(TimePoint when, protocol::Message message);
  void fail_process();
  [[nodiscard]] round::LinkId link() const { return link_; }
  [[nodiscard]] int process() const { return process_; }
  /// The round whose ranks it has; 0: none.
  [[nodiscard]] int round() const { return group_; }
  /// The last round that the coordinator has sent it; 0: it is a spare.
  [[nodiscard]] int assigned() const { return assigned_; }
  void assign(int round) { assigned_ = round; }

  [[nodiscard]] TimePoint now() const { return cluster_.timeline_.now(); }
  void act(const client::Connect& action);
  void act(const client::SendMessage& action);
  void act(const client::OpenStore& action);
  void act(const client::ReleaseStore& action);
  void act(const client::StartGroup& action);
  void act(const client::StopGroup& action);
  void act(const client::ArmTimer& action);
  /// In these lives there are no signals, no hangs, and no other node coordinates.
  template <class Action>
  void act(const Action&) {}

 private:
  /// What happens later, unless this process has gone by then.
  template <class What>
  void at(TimePoint when, What what);
  void end_group();
  void arm(TimePoint deadline);
  void wake();

  Cluster& cluster_;
  int id_;
  int process_;
  round::LinkId link_{0};
  client::LinkId own_link_ = 0;
  std::deque<protocol::Message> up_;
  std::deque<protocol::Message> down_;
  TimePoint last_down_{};
  TimePoint deadline_{};
  TimePoint wakes_at_ = TimePoint::max();
  std::uint16_t ports_opened_ = 0;
  int group_ = 0;
  int assigned_ = 0;
  bool ending_ = false;
  bool has_state_ = false;  // ranks here have trained in the last round, and did not fail
  Pump<ddprun::Node, node::Event, Node> agent_;
};

}  // namespace ddprun::bench

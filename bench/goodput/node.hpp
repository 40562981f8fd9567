// A node of the simulated cluster: the real NodeDriver on modelled ports.
#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "agent/node/driver.hpp"
#include "bench/goodput/cluster.hpp"

namespace ddprun::bench {

class Cluster::Node final : public NodePorts {
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

  [[nodiscard]] TimePoint now() const override { return cluster_.timeline_.now(); }
  [[nodiscard]] bool host_coordinator() override { return false; }
  void connect(client::LinkId link, const std::optional<client::Place>& to) override;
  // In these lives no other node coordinates.
  Result<void> coordinate(const client::Coordinate&) override {
    return Error(ErrorKind::kSystem, "nowhere");
  }
  void withdraw_coordinator() override {}
  void close_link(client::LinkId) override {}
  void send(client::LinkId link, const protocol::Message& message) override;
  [[nodiscard]] Result<std::uint16_t> open_store() override;
  [[nodiscard]] Result<void> serve_store(Round, const std::vector<std::string>&) override {
    return {};
  }
  void release_store(Round round) override;
  void close_store(Round) override {}
  [[nodiscard]] Result<void> start_group(const protocol::StartRound& start) override;
  void stop_group(const client::StopGroup& order) override;
  void pass_stop_signal(int) override {}
  void deliver_signal(const client::DeliverSignal&) override {}
  void check_hang(const client::CheckHang&) override {}
  [[nodiscard]] bool failure_is_pending() const override { return false; }
  void arm_timer(TimePoint deadline) override;
  void log_note(const std::string&) override {}
  void log_death(const std::string&) override {}
  void log_restart(const std::string&) override {}
  void log_leaving(const ReceivedSignal&) override {}
  [[nodiscard]] int report_error(const Error&) override { return 1; }
  void end() override {}

 private:
  /// What happens later, unless this process has gone by then.
  template <class What>
  void at(TimePoint when, What what);
  void end_group();
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
  NodeDriver driver_;
};

}  // namespace ddprun::bench

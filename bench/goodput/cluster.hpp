// A cluster that trains for weeks, in one thread and in minutes: the real round::Run, and the real
// ddprun::Node of every node. Failures, wires and the times of everything that
// the cores order (stops, starts, what a program does after them) are modelled. Heartbeats are not:
// how long a silent machine goes unnoticed is part of the time to detect a failure.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/goodput/ledger.hpp"
#include "rendezvous/round/run.hpp"
#include "tests/sim/network.hpp"

namespace ddprun::bench {

/// One recovery; each phase begins when the one before it has ended on all nodes that it concerns.
struct Times {
  Duration detect{};    // of a failure, until its agent or the coordinator acts on it
  Duration per_node{};  // of the coordinator, to send one node its round
  Duration link{};      // a message
  Duration stop{};      // old ranks, or survivors that wait in a collective, are free
  Duration start{};     // a new rank is ready to join
  Duration rebuild{};   // process groups, on all ranks
  Duration transfer{};  // of the state, to those that lack it
  Duration first_step{};
};

enum class Restart : std::uint8_t { kAll, kFailed };  // which ranks start again
enum class Strikes : std::uint8_t { kAlways, kWhileTraining };

struct ClusterOptions {
  int nodes = 2048;   // that train
  int nodes_min = 0;  // 0: all of them
  int spares = 0;
  Duration mtbf{};  // of the whole world, spares not counted
  Duration length = std::chrono::hours(54 * 24);
  Duration repair = std::chrono::hours(24);  // until a lost node is back
  int lost_percent = 78;  // failures that take the node; of the others, a process
  Duration checkpoint{};  // the time between two; 0: no work is lost
  Restart restart = Restart::kAll;
  Strikes strikes = Strikes::kAlways;
  Times times;
  std::uint64_t seed = 1;
};

class Cluster {
 public:
  explicit Cluster(ClusterOptions options);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  void run();

  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  /// Of the simulated run.
  [[nodiscard]] double length_seconds() const;
  [[nodiscard]] int failures() const { return failures_; }
  [[nodiscard]] int nodes_lost() const { return nodes_lost_; }
  [[nodiscard]] int spares_used() const { return spares_used_; }
  [[nodiscard]] int rounds() const { return round_; }

 private:
  class Node;
  [[nodiscard]] protocol::Terms terms() const;
  [[nodiscard]] round::LinkId open_link(int node);
  void start(int node);
  void lose(int node);
  void schedule_failure();
  void strike();
  void interrupt();
  void to_run(const round::Event& event);
  void arm(TimePoint deadline);
  void wake();
  void send(const round::Send& sent, TimePoint& ready);
  void begin_round(const protocol::StartRound& start);
  void on_round_taken(int round, bool first);
  void on_group_started(int round);
  void on_ready(int round);
  void train();

  ClusterOptions options_;
  sim::Random random_;
  sim::Timeline timeline_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<int> by_link_;  // the node, by the coordinator's number of the link; -1: closed
  std::unique_ptr<round::Run> run_;
  TimePoint deadline_{};  // of the run
  TimePoint wakes_at_ = TimePoint::max();
  Ledger ledger_;
  int round_ = 0;       // the last one that was decided
  int group_size_ = 0;  // its nodes
  int taken_ = 0;       // of these
  int started_ = 0;
  int ready_ = 0;
  int doomed_ = 0;      // the last round that a failure has struck
  bool waits_ = false;  // no round lives
  bool measuring_ = false;
  TimePoint measured_from_{};
  int processes_ = 0;
  int failures_ = 0;
  int nodes_lost_ = 0;
  int spares_used_ = 0;
};

}  // namespace ddprun::bench

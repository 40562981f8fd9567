// A cluster with one coordinator, the real Run: a daemon, or in the process of node 0's agent. The
// wires to it keep their order, are slow, break or fall silent.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "rendezvous/round/run.hpp"
#include "tests/sim/world.hpp"

namespace ddprun::sim {

enum class Bytes { kPlain, kCodec };         // whether messages go through the codec
enum class Coordinator { kAlone, kInRoot };  // a daemon, or in the process of node 0's agent

struct SoleOptions : WorldOptions {
  Coordinator coordinator = Coordinator::kAlone;
  Bytes bytes = Bytes::kPlain;
};

class SoleWorld final : public World {
 public:
  explicit SoleWorld(const SoleOptions& options)
      : World(options), place_(options.coordinator), bytes_(options.bytes) {}

  // The plot.
  /// A signal that ends nothing reaches these agents at the same time.
  void notify_agents(const std::vector<int>& ids, int signal);
  /// Its thread does nothing: stopped, or blocked in a call. The kernel still answers.
  void pause_agent(int node, Duration time);
  void set_partitioned(int node, bool partitioned);
  void drop_link(int node);
  /// A stranger says hello with the id of its agent, and then nothing.
  void impersonate(int node);
  void start_coordinator();
  void crash_coordinator();
  /// Its process is stopped; the kernel still answers.
  void pause_coordinator(Duration time);
  /// Its machine stands still: no packet gets an answer.
  void freeze_coordinator_machine(Duration time);

  // What can be seen.
  /// Whether no process stands still.
  [[nodiscard]] bool all_run() const;
  [[nodiscard]] bool coordinator_up() const { return run_ != nullptr; }
  [[nodiscard]] const round::Run& run() const { return *run_; }
  /// Those that a coordinator could start a round with.
  [[nodiscard]] int agents_joined() const;
  [[nodiscard]] bool finished() const { return finished_; }
  /// Signals that ended nothing, for each node whose workers must have got them.
  [[nodiscard]] int signals_checked() const { return signals_checked_; }
  [[nodiscard]] std::uint64_t sends() const { return sends_; }

 private:
  struct Connection {
    int node = -1;
    int process = -1;
    client::LinkId agent_link = 0;
    int coordinator = 0;  // which of the coordinators that followed each other
    round::LinkId link;
    Pipe up;    // to the coordinator
    Pipe down;  // to the agent
    bool agent_open = true;
    bool coordinator_open = true;
    bool greeted = false;  // the agent has said hello
  };
  enum class Way { kUp, kDown };

  [[nodiscard]] bool is_root(int node) const { return node == 0 && place_ == Coordinator::kInRoot; }
  [[nodiscard]] bool cut_off(int node) const;
  [[nodiscard]] bool frozen() const { return now() < frozen_until_; }

  // World.
  void make_agent(int node) override;
  void connect(int node, const client::Connect& order) override;
  void close_link(int node, client::LinkId link) override;
  void send(int node, const client::SendMessage& order) override;
  [[nodiscard]] client::MembershipOptions membership_options(int node) const override;
  [[nodiscard]] bool is_reached(int from, int to) const override {
    return !cut_off(from) && !cut_off(to);
  }
  [[nodiscard]] Checker::Coordinated coordinated(int node) const override;
  void after_end(int node) override;
  void end_process(int node, int process);
  void exit_process(int node) override;
  void lose_process(int node, Gone how) override;

  // sole_wire.cpp
  void to_agent(int node, int process, client::Event event);
  void take_note_of(int node, const protocol::Message& message);
  void establish(int node, int process, client::LinkId link, TimePoint give_up);
  void push(int connection, Way way, Item item);
  void pump(int connection, Way way);
  void schedule_pump(int connection, Way way, TimePoint when);
  void deliver(int connection, Way way, Item item);
  void deliver_up(int connection, Item item);
  void drain_arrived();
  void close_agent_end(int connection);
  void close_coordinator_end(int connection);
  void detach(int connection);
  void resume_wires(int node);
  [[nodiscard]] protocol::Message through_codec(protocol::Message message) const;

  // sole_signals.cpp
  void expect_signal(const std::vector<int>& ids);
  [[nodiscard]] bool is_in_touch(int node) const;

  // sole_coordinator.cpp
  void to_coordinator(int coordinator, round::Event event);
  void tell_coordinator(const round::Event& event);
  void check_left(const round::Received& received);
  void apply(const round::Actions& actions);
  void send(const round::Send& sent, std::vector<Checker::Sent>& rounds);
  void finish_run(const round::Finish& finish);
  void arm_coordinator(TimePoint deadline);
  void coordinator_timer(int coordinator, int timer, TimePoint when);
  [[nodiscard]] TimePoint coordinator_paused_until() const;
  [[nodiscard]] const DriftingClock& coordinator_clock() const;
  [[nodiscard]] bool can_answer(const Connection& connection) const;

  Coordinator place_;
  Bytes bytes_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::map<std::uint64_t, int> by_link_;  // the current coordinator's links
  std::unique_ptr<round::Run> run_;
  DriftingClock coordinator_clock_;
  TimePoint coordinator_paused_until_{};
  TimePoint frozen_until_{};
  int coordinator_ = 0;
  int coordinator_timer_ = 0;
  bool coordinator_timer_pending_ = false;
  round::Phase phase_ = round::Phase::kForming;
  TimePoint notified_{};  // the last signal that ended nothing
  int signals_checked_ = 0;
  int speaker_ = -1;        // the process whose message the coordinator is taking
  bool run_terms_ = false;  // the current coordinator has admitted an agent
  bool finished_ = false;
  std::uint64_t links_ = 0;
  std::uint64_t sends_ = 0;
};

}  // namespace ddprun::sim

// The shell of a round of the simulated world: feeds the real LocalRound, and does what that orders
// with modelled processes and files. What a round must never do, whatever happens to it, is checked
// here.
#pragma once

#include <algorithm>
#include <csignal>
#include <deque>
#include <memory>
#include <utility>

#include "agent/node/kill_order.hpp"
#include "agent/node/local_round.hpp"
#include "agent/watch/device_release.hpp"
#include "base/limits.hpp"
#include "tests/sim/world.hpp"

namespace ddprun::sim {

class World::RoundShell : public std::enable_shared_from_this<RoundShell> {
 public:
  RoundShell(World& world, int id, int generation, LocalRound::Options options)
      : world_(world), id_(id), generation_(generation), round_(at_its_time(std::move(options))) {}

  /// Takes an event, or queues it while the actions of another one are carried out.
  void feed(local::Event event);
  [[nodiscard]] const WorkerGroup& group() const { return round_.group(); }
  [[nodiscard]] const LocalRound& round() const { return round_; }
  /// It has ended: the round learns of that.
  void exited(LocalRank rank, ExitStatus status, LeftBehind left);
  void give_up(const GiveUp& order);
  [[nodiscard]] RoundResult result() const;

 private:
  // clang-format off
  void act(const local::OpenFiles& action);
  void act(const local::GiveUpFiles&) { its().opening = false; }
  void act(const local::AwaitDevices& action);
  void act(const local::PostSpawn& action);
  void act(const local::StartWorker& action);
  void act(const local::TellRound& action);
  void act(const Signal& action);
  void act(const local::AskStacks& action);
  void act(const ArmTimer& action);
  void act(const local::CancelTimer&) { ++its().timer; }
  void act(const local::LookForComplaint& action);
  void act(const local::ArmHearing& action);
  void act(const local::Look& action);
  void act(const local::ReadRaised&) {}
  void act(const local::CatchUp&) {}
  void act(const local::LookForEvidence& action);
  void act(const local::Tell& action);
  void act(const local::TellSpawnFailed& action);
  void act(const local::Over& action);
  void act(const local::ExitTaken&) {}
  void act(const local::SignalsBegin&) {}
  void act(const local::SpawnGivenUp&) {}
  void act(const local::GaveUp&) {}
  void act(const local::LogFailure&) {}
  void act(const local::LogStop&) {}
  void act(const local::LogLeftBehind&) {}
  void act(const local::LogAgain&) {}
  void act(const local::LogRecovery&) {}
  // clang-format on
  [[nodiscard]] Result<void> start_worker(LocalRank rank);
  [[nodiscard]] WorkerName name_of(LocalRank rank) const;
  [[nodiscard]] LocalRound at_its_time(LocalRound::Options options) const;
  [[nodiscard]] Node& node() const { return world_.nodes_[index(id_)]; }
  [[nodiscard]] Group& its() const { return *node().group; }
  [[nodiscard]] TimePoint now() const { return node().clock.local(world_.now()); }
  /// Fed when the agent's thread looks.
  void later(TimePoint when, local::Event event);

  World& world_;
  int id_;
  int generation_;
  LocalRound round_;
  std::deque<local::Event> events_{};
  bool feeding_ = false;
};

}  // namespace ddprun::sim

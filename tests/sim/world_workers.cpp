// Workers of the simulated world: each node's real WorkerGroup between modelled processes, as
// agent/round.hpp runs it. A group works once all groups of its round run; when one goes, its peers
// may fail or hang, as in a collective.
#include <csignal>
#include <utility>

#include "agent/proc/limits.hpp"
#include "tests/sim/world.hpp"

namespace ddprun::sim {

using State = ddprun::GroupState;

namespace {
constexpr Duration kStopGrace = seconds(30);

/// The inverse of shell_code().
ExitStatus status_of(int shell_code) {
  return shell_code > 128 ? ExitStatus::signaled(shell_code - 128) : ExitStatus::exited(shell_code);
}
}  // namespace

World::Group* World::group_of(int id, int generation) {
  auto& group = nodes_[index(id)].group;
  return group && group->generation == generation ? &*group : nullptr;
}

void World::start_group(int id, const protocol::StartRound& round) {
  Node& node = nodes_[index(id)];
  require(!node.group, "workers of two rounds on one node");
  checker_.on_group_started(node.process, round);
  Group group;
  group.round = round;
  group.generation = ++generations_;
  group.core =
      std::make_unique<WorkerGroup>(WorkerGroup::Options{node.options.workers, kStopGrace});
  group.workers.resize(index(node.options.workers));
  group.started = now();
  const int generation = group.generation;
  node.group = std::move(group);
  say(node.options.host + " starts its workers of round " +
      std::to_string(round.stamp.number.value()));
  if (now() >= node.start_stalled_until) return begin_group(id, generation);
  timeline_.at(node.start_stalled_until, [this, id, generation] { begin_group(id, generation); });
}

// Its folders are made; a stop that came meanwhile is obeyed: nothing starts.
void World::begin_group(int id, int generation) {
  Group* group = group_of(id, generation);
  if (group == nullptr) return;
  if (paused(id)) {
    timeline_.at(nodes_[index(id)].paused_until,
                 [this, id, generation] { begin_group(id, generation); });
    return;
  }
  group->begun = true;
  if (group->core->over()) return drain_group(id, generation);
  feed_group(id, generation, Start{});
}

// What happens to workers is learned by the agent: later, if its thread stands still. An event that
// the group cannot get in its state is a bug of the shell, or of this model of it.
void World::feed_group(int id, int generation, const GroupEvent& event) {
  Group* group = group_of(id, generation);
  if (group == nullptr) return;  // the agent is gone, and its workers with it
  if (paused(id)) {
    timeline_.at(nodes_[index(id)].paused_until,
                 [this, id, generation, event] { feed_group(id, generation, event); });
    return;
  }
  const bool possible = WorkerGroup::possible(group->core->state(), event);
  require(possible, "the agent of " + nodes_[index(id)].options.host + " would abort: event " +
                        std::to_string(event.index()) + " of a group in state " +
                        std::to_string(static_cast<int>(group->core->state())));
  const bool was_ending = group->ending();
  const TimePoint local = nodes_[index(id)].clock.local(now());
  const GroupActions actions = group->core->step(event, local);
  const State state = group->core->state();
  const bool stops = state != State::kSucceeded && state != State::kStraggling;
  if (!was_ending && group->ending() && stops) {
    checker_.on_stopping(group->round.stamp, now());
  }
  for (const GroupAction& action : actions) act(id, generation, action);
}

void World::act(int id, int generation, const GroupAction& action) {
  if (const auto* started = std::get_if<Spawn>(&action)) {
    const Duration time = random_.between(options_.spawn_min, options_.spawn_max);
    timeline_.after(time / nodes_[index(id)].options.workers,
                    [this, id, generation, rank = started->rank] { spawn(id, generation, rank); });
  } else if (const auto* order = std::get_if<Signal>(&action)) {
    signal_worker(id, generation, *order);
  } else if (const auto* timer = std::get_if<ddprun::ArmTimer>(&action)) {
    arm_group(id, generation, timer->deadline);
  } else if (std::holds_alternative<AllRunning>(action)) {
    group_runs(id, generation);
  } else if (const auto* failed = std::get_if<FirstFailure>(&action)) {
    look_into_files(id, generation, failed->rank);
  } else if (std::holds_alternative<AllSucceeded>(action)) {
    group_succeeds(id);
  } else if (std::holds_alternative<ddprun::Finish>(action)) {
    ++group_of(id, generation)->timer;  // is cancelled
    drain_group(id, generation);
  }
}

void World::spawn(int id, int generation, LocalRank rank) {
  Group* group = group_of(id, generation);
  if (group == nullptr) return;
  Node& node = nodes_[index(id)];
  if (paused(id)) {
    timeline_.at(node.paused_until, [this, id, generation, rank] { spawn(id, generation, rank); });
    return;
  }
  if (!std::exchange(node.spawn_breaks, false)) {
    group->workers[index(rank.value())].alive = true;
    return feed_group(id, generation, Spawned{rank});
  }
  const bool decides = group->core->state() == State::kStarting;
  const std::string sentence = "no such program";
  feed_group(id, generation, SpawnFailed{rank, Error(ErrorKind::kUsage, sentence)});
  if (!decides) return;
  expect_leave(id, sentence);
  drive(id, [&](NodeDriver& driver) { driver.fail_to_spawn(127, sentence); });
}

// To a process that has ended a signal does nothing; one that lives is answered some time later.
void World::signal_worker(int id, int generation, const Signal& order) {
  Worker& worker = group_of(id, generation)->workers[index(order.rank.value())];
  const bool kill = order.signal == SIGKILL;
  if (worker.helper_alive && (kill || worker.helper == Helpers::kObedient)) {
    timeline_.after(
        kill ? Duration(milliseconds(1)) : options_.stop_max,
        [this, id, generation, rank = order.rank] { end_helper(id, generation, rank); });
  }
  if (!worker.alive) return;
  worker.signalled = true;
  if (worker.unkillable) return;
  const Duration time =
      kill ? Duration(milliseconds(1)) : random_.between(options_.stop_min, options_.stop_max);
  const bool graceful =
      !kill && options_.graceful_percent > 0 && random_.chance(options_.graceful_percent);
  const ExitStatus status = graceful ? ExitStatus::exited(0) : ExitStatus::signaled(order.signal);
  timeline_.after(time, [this, id, generation, rank = order.rank, status] {
    exit_worker(id, generation, rank, status);
  });
}

void World::arm_group(int id, int generation, TimePoint deadline) {
  const int timer = ++nodes_[index(id)].group->timer;
  timeline_.at(nodes_[index(id)].clock.global(deadline), [this, id, generation, timer, deadline] {
    const Group* group = group_of(id, generation);
    if (group != nullptr && group->timer == timer) {
      feed_group(id, generation, TimerExpired{deadline});
    }
  });
}

// A process ends once.
void World::exit_worker(int id, int generation, LocalRank rank, ExitStatus status) {
  Group* group = group_of(id, generation);
  if (group == nullptr) return;
  Worker& worker = group->workers[index(rank.value())];
  if (!std::exchange(worker.alive, false)) return;
  const bool done = status.success() && !worker.signalled;
  if (done) checker_.on_rank_done(nodes_[index(id)].process, group->round.stamp, now());
  const protocol::RoundStamp stamp = group->round.stamp;
  worker.helper_alive = worker.leaves_helper;
  if (worker.helper_alive) {
    timeline_.after(worker.helper_lives,
                    [this, id, generation, rank] { end_helper(id, generation, rank); });
  }
  const LeftBehind left = worker.helper_alive ? LeftBehind::kProcesses : LeftBehind::kNothing;
  feed_group(id, generation, Exited{rank, status, left});
  tell_if_idle(stamp);
}

void World::end_helper(int id, int generation, LocalRank rank) {
  Group* group = group_of(id, generation);
  if (group == nullptr) return;
  const bool lived = std::exchange(group->workers[index(rank.value())].helper_alive, false);
  if (lived) feed_group(id, generation, GroupEmptied{rank});
}

void World::leave_helpers(int id, Helpers helpers, Duration time) {
  Node& node = nodes_[index(id)];
  if (!node.group) return;
  say("workers of " + node.options.host + " will leave processes behind");
  for (Worker& worker : node.group->workers) {
    if (!worker.alive || random_.chance(30)) continue;
    worker.leaves_helper = true;
    worker.helper = helpers;
    worker.helper_lives = time;
  }
}

void World::group_succeeds(int id) {
  Node& node = nodes_[index(id)];
  const Round round = node.group->round.stamp.number;
  checker_.on_group_succeeded(node.process, round);
  say(node.options.host + "'s workers ended with 0");
  drive(id, [&](NodeDriver& driver) { driver.group_succeeded(round); });
}

void World::group_runs(int id, int generation) {
  Group* group = group_of(id, generation);
  group->running = true;
  const protocol::StartRound round = group->round;
  drive(id, [&](NodeDriver& driver) { driver.group_runs(round.stamp.number); });
  auto& runners = running_[key_of(round.stamp)];
  runners.emplace_back(id, generation);
  if (static_cast<int>(runners.size()) < round.group_size) return;
  for (const auto& [peer, peer_generation] : runners) {
    const int workers = nodes_[index(peer)].options.workers;
    for (int rank = 0; rank < workers; ++rank) {
      const Duration time = options_.work + random_.between(Duration(0), options_.work_skew);
      timeline_.after(time, [this, node = peer, number = peer_generation, rank] {
        rank_work_done(node, number, LocalRank(rank));
      });
    }
  }
}

// Told to stop, it is busy with that.
void World::rank_work_done(int id, int generation, LocalRank rank) {
  const Group* group = group_of(id, generation);
  if (group == nullptr || group->workers[index(rank.value())].signalled) return;
  exit_worker(id, generation, rank, ExitStatus::exited(0));
}

void World::finish_worker_group(int id) {
  const Node& node = nodes_[index(id)];
  if (!node.group) return;
  const int generation = node.group->generation;
  for (int rank = 0; rank < node.options.workers; ++rank) {
    rank_work_done(id, generation, LocalRank(rank));
  }
}

void World::fail_worker(int id, const std::string& cause, int exit_code, int local_rank) {
  Node& node = nodes_[index(id)];
  const bool can_fail = node.group && node.group->running && !node.group->ending();
  if (!can_fail) return;
  Worker& worker = node.group->workers[index(local_rank)];
  if (!worker.alive || worker.signalled) return;
  say(node.options.host + "'s rank " +
      std::to_string(node.group->round.rank_base.value() + local_rank) + " fails: " + cause);
  const protocol::RoundStamp stamp = node.group->round.stamp;
  checker_.on_group_failed(stamp);
  exit_worker(id, node.group->generation, LocalRank(local_rank), status_of(exit_code));
  disturb_peers(stamp, id);
}

void World::make_unkillable(int id) {
  Node& node = nodes_[index(id)];
  if (!node.group) return;
  say("a worker of " + node.options.host + " hangs in the kernel");
  node.group->workers.back().unkillable = true;
}

void World::look_into_files(int id, int generation, LocalRank rank) {
  const Node& node = nodes_[index(id)];
  Duration time(0);
  if (options_.evidence_max > time) time = random_.between(time, options_.evidence_max);
  if (now() < node.start_stalled_until) {
    time = std::max(time, std::min<Duration>(kEvidenceMax, node.start_stalled_until - now()));
  }
  group_of(id, generation)->looking = true;
  if (time == Duration(0)) return tell_failure(id, generation, rank);
  timeline_.after(time, [this, id, generation, rank] { tell_failure(id, generation, rank); });
}

void World::tell_failure(int id, int generation, LocalRank rank) {
  if (group_of(id, generation) == nullptr) return;
  Node& node = nodes_[index(id)];
  if (paused(id)) {
    timeline_.at(node.paused_until,
                 [this, id, generation, rank] { tell_failure(id, generation, rank); });
    return;
  }
  Group& group = *node.group;
  group.looking = false;
  WorkerExit exit;
  exit.worker.rank = Rank(group.round.rank_base.value() + rank.value());
  exit.worker.local_rank = rank;
  exit.worker.pid = 1000 + id;
  exit.status = *group.core->worker(rank).status;
  exit.after = std::chrono::duration_cast<milliseconds>(now() - group.started);
  exit.lines = {"the last line"};
  const Round round = group.round.stamp.number;
  const bool over = group.core->over();
  drive(id, [&](NodeDriver& driver) { driver.group_failed(round, exit); });
  if (over) drain_group(id, generation);
}

void World::stop_group(int id, const client::StopGroup& order) {
  const Node& node = nodes_[index(id)];
  if (!node.group) return;  // it has just ended: that is in the queue behind this order
  require(order.round == node.group->round.stamp.number, "another round's workers are stopped");
  const bool news = !node.group->ending();
  if (news) {
    say(node.options.host + " stops its workers of round " +
        std::to_string(node.group->round.stamp.number.value()));
  }
  const protocol::RoundStamp stamp = node.group->round.stamp;
  feed_group(id, node.group->generation, StopOrdered{order.signal, order.grace});
  if (news) disturb_peers(stamp, id);
}

// Their last output is read, which takes longer where a console stalls; in any case the rest of
// what the group says comes first.
void World::drain_group(int id, int generation) {
  const Group* group = group_of(id, generation);
  if (!group->begun || group->looking) return;  // at its folders, or at the files of a failure
  Duration time(0);
  if (options_.drain_max > time) time = random_.between(time, options_.drain_max);
  timeline_.after(time, [this, id, generation] { group_over(id, generation); });
}

void World::group_over(int id, int generation) {
  Group* group = group_of(id, generation);
  if (group == nullptr) return;
  Node& node = nodes_[index(id)];
  if (paused(id)) {
    timeline_.at(node.paused_until, [this, id, generation] { group_over(id, generation); });
    return;
  }
  const Round round = group->round.stamp.number;
  GroupOutcome outcome;
  const bool unkillable = !group->core->running().empty() || !group->core->leaving().empty();
  node.group.reset();
  checker_.on_group_gone(node.process);
  if (unkillable) {
    outcome.unkillable = "a worker";
    expect_leave(id, outcome.unkillable);
  }
  drive(id, [&](NodeDriver& driver) { driver.group_over(round, outcome); });
}

void World::disturb_peers(const protocol::RoundStamp& stamp, int id) {
  if (options_.peer_failure_percent == 0) return;
  const auto found = running_.find(key_of(stamp));
  if (found == running_.end()) return;
  for (const auto& [peer, generation] : found->second) {
    if (peer == id || !random_.chance(options_.peer_failure_percent)) continue;
    const Duration time = random_.between(Duration(0), milliseconds(100));
    timeline_.after(time, [this, node = peer, number = generation] {
      if (group_of(node, number) != nullptr) fail_worker(node, "connection closed by peer", 1);
    });
  }
}

}  // namespace ddprun::sim

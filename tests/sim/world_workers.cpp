// The processes of the simulated world. A group of workers works once all groups of its round run;
// when one goes, its peers may fail or hang, as in a collective.
#include <algorithm>
#include <csignal>
#include <utility>

#include "agent/node/kill_order.hpp"
#include "tests/sim/round_shell.hpp"

namespace ddprun::sim {

namespace {

// A rank that fails so is a witness: another one has failed, or was stopped.
constexpr const char* kLostPeer = "connection closed by peer";

/// The inverse of shell_code().
ExitStatus status_of(int shell_code) {
  return shell_code > 128 ? ExitStatus::signaled(shell_code - 128) : ExitStatus::exited(shell_code);
}

}  // namespace

// To a process that has ended a signal does nothing; one that lives is answered some time later.
void World::signal_worker(int id, int generation, LocalRank rank, int signal) {
  Worker& worker = group_of(id, generation)->workers[index(rank.value())];
  const bool kill = signal == SIGKILL;
  if (!worker.awaited) {
    signal_helper(id, generation, rank, signal);
    timeline_.after(Duration(0),
                    [this, id, generation, rank] { look_again(id, generation, rank); });
  }
  if (!worker.alive) return;
  // What is in its group or its cgroup is killed with it.
  const bool reached = worker.helper < Helpers::kElsewhere || !nodes_[index(id)].options.blind;
  if (kill && reached && worker.helper != Helpers::kUnkillable) worker.leaves_helper = false;
  worker.signal = signal;
  if (worker.unkillable || (worker.ignores_stop && !kill)) return;
  const Duration time =
      kill ? Duration(milliseconds(1)) : random_.between(options_.stop_min, options_.stop_max);
  const bool graceful =
      !kill && options_.graceful_percent > 0 && random_.chance(options_.graceful_percent);
  const ExitStatus status = graceful ? ExitStatus::exited(0) : ExitStatus::signaled(signal);
  timeline_.after(
      time, [this, id, generation, rank, status] { exit_worker(id, generation, rank, status); });
}

// It writes, and ends; or SIGKILL is faster.
void World::abort_worker(int id, int generation, LocalRank rank) {
  if (group_of(id, generation)->workers[index(rank.value())].unkillable) return;
  const Duration time = random_.between(Duration(0), 2 * kStacksBeforeKill);
  timeline_.after(time, [this, id, generation, rank] {
    exit_worker(id, generation, rank, ExitStatus::signaled(SIGABRT));
  });
}

// A process ends once; the agent learns of it when its thread looks.
void World::exit_worker(int id, int generation, LocalRank rank, ExitStatus status) {
  Group* group = group_of(id, generation);
  if (group == nullptr) return;
  Worker& worker = group->workers[index(rank.value())];
  if (!std::exchange(worker.alive, false)) return;
  worker.status = status;
  const bool out_of_round = options_.survivor_percent && (!worker.joined || group->ending());
  const bool before = worker.joined ? is_before_join(id) : group->all_carried;
  const bool finished = status.success() && worker.signal == 0;
  const int process = nodes_[index(id)].process;
  if (finished) checker_.on_rank_finished(process, *worker.trains_in);
  const bool done = finished && (!out_of_round || before);
  if (done) checker_.on_rank_done(process, *worker.trains_in, now());
  const protocol::RoundStamp stamp = group->round.stamp;
  worker.helper_alive = worker.leaves_helper;
  if (worker.helper_alive) {
    timeline_.after(worker.helper_lives,
                    [this, id, generation, rank] { end_helper(id, generation, rank); });
  }
  on_group_thread(id, generation, [this, id, generation, rank, status](const Group&) {
    see_exit(id, generation, rank, status);
  });
  tell_if_idle(stamp);
}

// As Descendants::look(): without cgroups nothing can be known of one worker while others live.
// What it left gets the last signal now.
void World::see_exit(int id, int generation, LocalRank rank, ExitStatus status) {
  Group& group = *group_of(id, generation);
  Worker& worker = group.workers[index(rank.value())];
  worker.awaited = false;
  record(id, Seen::kExit, group.round.rank_base.value() + rank.value());
  const auto awaited = [](const Worker& one) { return one.awaited; };
  const bool others = std::any_of(group.workers.begin(), group.workers.end(), awaited);
  worker.unknown = nodes_[index(id)].options.blind && others && !options_.survivor_percent;
  if (!worker.unknown) signal_helper(id, generation, rank, worker.signal);
  const bool left = worker.unknown || worker.helper_alive;
  group.shell->exited(rank, status, left ? LeftBehind::kProcesses : LeftBehind::kNothing);
  if (others) return;
  for (int other = 0; other < static_cast<int>(group.workers.size()); ++other) {
    timeline_.after(Duration(0), [this, id, generation, other] {
      look_again(id, generation, LocalRank(other));
    });
  }
}

void World::look_again(int id, int generation, LocalRank rank) {
  on_group_thread(id, generation, [this, id, generation, rank](const Group&) {
    Worker& worker = group_of(id, generation)->workers[index(rank.value())];
    if (!std::exchange(worker.unknown, false)) return;
    if (worker.helper_alive) return signal_helper(id, generation, rank, worker.signal);
    group_of(id, generation)->shell->feed(local::Emptied{rank});
  });
}

void World::signal_helper(int id, int generation, LocalRank rank, int signal) {
  Worker& worker = group_of(id, generation)->workers[index(rank.value())];
  if (signal != 0) worker.signal = signal;
  const bool kill = signal == SIGKILL;
  const bool obeys =
      kill ? worker.helper != Helpers::kUnkillable
           : worker.helper == Helpers::kObedient || worker.helper == Helpers::kElsewhere;
  if (signal == 0 || !worker.helper_alive || !obeys) return;
  timeline_.after(kill ? Duration(milliseconds(1)) : options_.stop_max,
                  [this, id, generation, rank] { end_helper(id, generation, rank); });
}

void World::end_helper(int id, int generation, LocalRank rank) {
  Group* group = group_of(id, generation);
  if (group == nullptr) return;
  Worker& worker = group->workers[index(rank.value())];
  if (!std::exchange(worker.helper_alive, false)) return;
  if (worker.awaited || worker.unknown) return;  // then the next look finds nothing
  on_group_thread(id, generation,
                  [rank](const Group& its) { its.shell->feed(local::Emptied{rank}); });
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

// Told to stop, it is busy with that.
void World::rank_work_done(int id, int generation, LocalRank rank) {
  const Group* group = group_of(id, generation);
  if (group == nullptr) return;
  const Worker& worker = group->workers[index(rank.value())];
  if (options_.survivor_percent && group->ending()) return;  // it waits for the next round
  if (!worker.joined) {  // perhaps another one will be in its place
    timeline_.after(seconds(1),
                    [this, id, generation, rank] { rank_work_done(id, generation, rank); });
    return;
  }
  if (worker.signal != 0) return;
  if (group->quiet_since) make_progress(id, generation, *group->quiet_since);
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
  if (!worker.alive || worker.signal != 0) return;
  say(node.options.host + "'s rank " +
      std::to_string(node.group->round.rank_base.value() + local_rank) + " fails: " + cause);
  const protocol::RoundStamp stamp = node.group->round.stamp;
  worker.complains = cause == kLostPeer;
  checker_.on_group_failed(stamp);
  exit_worker(id, node.group->generation, LocalRank(local_rank), status_of(exit_code));
  disturb_siblings(id);
  disturb_peers(stamp, id);
}

// Where the run ends they have time to say what they saw, to save, or to end as if nothing was.
void World::disturb_siblings(int id) {
  const Node& node = nodes_[index(id)];
  if (options_.peer_failure_percent == 0 || !node.group || !node.group->round.may_be_last) return;
  for (int rank = 0; rank < node.options.workers; ++rank) {
    if (!random_.chance(options_.peer_failure_percent)) continue;
    const Duration time = random_.between(Duration(0), 3 * kFailureGrace / 2);
    const ExitStatus status = ExitStatus::exited(random_.chance(20) ? 0 : 1);
    timeline_.after(time, [this, id, generation = node.group->generation, rank, status] {
      const Group* group = group_of(id, generation);
      if (group == nullptr || !group->shell->group().spared_until()) return;
      group_of(id, generation)->workers[index(rank)].complains = random_.chance(50);
      exit_worker(id, generation, LocalRank(rank), status);
    });
  }
}

// A decision of the agent's thread, which has seen by then what came before it.
void World::give_up_ranks(int id, const std::string& no_restart) {
  const Node& node = nodes_[index(id)];
  if (!node.group || !node.group->running) return;
  on_group_thread(id, node.group->generation, [this, id, no_restart](const Group& group) {
    const bool healthy = group.shell->group().state() == GroupState::kHealthy;
    if (!healthy || group.shell->group().running().empty()) return;
    say(host_of(id) + " gives up its ranks: they hang");
    const protocol::RoundStamp stamp = group.round.stamp;
    checker_.on_group_failed(stamp);
    Finding why{"HANG", "no progress", {}, {}, "", ""};
    why.no_restart = no_restart;
    group.shell->give_up({LocalRank(0), 114, std::move(why), ""});
    disturb_peers(stamp, id);
  });
}

void World::make_unkillable(int id, Duration time) {
  Node& node = nodes_[index(id)];
  if (!node.group) return;
  say("a worker of " + node.options.host + " hangs in the kernel");
  node.group->workers.front().ignores_stop = true;
  node.group->workers.back().unkillable = true;
  const LocalRank rank(node.options.workers - 1);
  timeline_.after(time, [this, id, generation = node.group->generation, rank] {
    release_worker(id, generation, rank);
  });
}

// It acts on what it was sent meanwhile.
void World::release_worker(int id, int generation, LocalRank rank) {
  Group* group = group_of(id, generation);
  if (group == nullptr) return;
  Worker& worker = group->workers[index(rank.value())];
  worker.unkillable = false;
  if (worker.signal != 0) exit_worker(id, generation, rank, ExitStatus::signaled(worker.signal));
}

void World::disturb_peers(const protocol::RoundStamp& stamp, int id) {
  if (options_.peer_failure_percent == 0) return;
  const auto found = running_.find(key_of(stamp));
  if (found == running_.end()) return;
  for (const auto& [peer, generation] : found->second) {
    if (peer == id || !random_.chance(options_.peer_failure_percent)) continue;
    const Duration time = random_.between(Duration(0), milliseconds(100));
    timeline_.after(time, [this, node = peer, number = generation] {
      if (group_of(node, number) != nullptr) fail_worker(node, kLostPeer, 1);
    });
  }
}

}  // namespace ddprun::sim

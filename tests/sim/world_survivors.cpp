// Workers of the simulated world that are kept from one round to the next (--restart=failed).
#include <algorithm>
#include <csignal>
#include <utility>

#include "base/limits.hpp"
#include "tests/sim/round_shell.hpp"

namespace ddprun::sim {

// What it is told of, it takes some time later, or never, or it ends.
void World::tell_round(int id, int generation, LocalRank rank) {
  Group& group = *nodes_[index(id)].group;
  Worker& told = group.workers[index(rank.value())];
  require(told.awaited, "a worker that has ended is told of a round");
  if (told.in_last_step) return;  // it ends before it takes another round
  const int fate = options_.steady ? 1 : random_.between(1, 100);
  if (fate > 95) return;
  const Duration time = random_.between(Duration(0), fate > 90 ? 2 * kRejoin : milliseconds(50));
  timeline_.after(time, [this, id, generation, rank, fate] {
    if (group_of(id, generation) == nullptr) return;
    if (fate <= 85) return take_round(id, generation, rank);
    const auto status = fate > 88 ? ExitStatus::exited(0) : ExitStatus::signaled(SIGSEGV);
    const bool may = !group_of(id, generation)->workers[index(rank.value())].joined;
    return may ? exit_worker(id, generation, rank, status) : void();
  });
}

void World::take_round(int id, int generation, LocalRank rank) {
  const Group& group = *group_of(id, generation);
  Worker& worker = group_of(id, generation)->workers[index(rank.value())];
  if (!worker.alive || worker.joined) return;  // another one is in its place
  worker.joined = true;
  worker.trains_in = key_of(group.round.stamp);
  on_group_thread(id, generation,
                  [rank](const Group& its) { its.shell->feed(local::Joined{rank}); });
}

// All ranks of a round end with 0 at times of their own, since they agreed to.
void World::take_last_step(int id, Duration least, Duration most) {
  Node& node = nodes_[index(id)];
  if (!node.group || !node.group->running || node.group->ending()) return;
  for (Worker& worker : node.group->workers) {
    if (!worker.alive || !worker.joined) continue;
    worker.in_last_step = true;
    timeline_.after(random_.between(least, most),
                    [this, id, number = worker.number] { finish_last_step(id, number); });
  }
}

void World::finish_last_step(int id, int number) {
  const Node& node = nodes_[index(id)];
  if (!node.group) return;
  for (int rank = 0; rank < node.options.workers; ++rank) {
    const Worker& worker = node.group->workers[index(rank)];
    if (worker.number != number || !worker.alive || worker.signal != 0) continue;
    exit_worker(id, node.group->generation, LocalRank(rank), ExitStatus::exited(0));
  }
}

/// Whether its workers live, or have finished, and the round that its agent knows follows theirs.
bool World::is_before_join(int id) const {
  const Group& group = *nodes_[index(id)].group;
  const bool next = checker_.told(nodes_[index(id)].process).stamp.number.value() ==
                    group.round.stamp.number.value() + 1;
  return next && std::all_of(group.workers.begin(), group.workers.end(), [](const Worker& worker) {
           const bool finished = worker.status && worker.status->success();
           return worker.joined && worker.signal == 0 && (worker.alive || finished);
         });
}

// Over its link, some time after its start.
void World::say_survives(int id, int generation, LocalRank rank) {
  const int number = group_of(id, generation)->workers[index(rank.value())].number;
  timeline_.after(random_.between(Duration(0), seconds(1)), [this, id, generation, rank, number] {
    on_group_thread(id, generation, [rank, number](const Group& its) {
      const Worker& worker = its.workers[index(rank.value())];
      if (worker.awaited && worker.number == number) its.shell->feed(local::Survives{rank});
    });
  });
}

// A process that has waited for a place is handed over like one that is kept.
void World::take_spares(Group& group, WorkerGroup::Options& options) {
  for (int rank = 0; rank < static_cast<int>(group.workers.size()); ++rank) {
    Worker& worker = group.workers[index(rank)];
    if (worker.alive || !worker.joined || !random_.chance(options_.spare_percent)) continue;
    worker.alive = worker.awaited = worker.survives = true;
    worker.joined = false;
    options.carried.emplace_back(rank);
    options.spares.emplace_back(rank);
  }
}

// It ended before this round, and its agent has not looked since.
void World::see_late_exit(int id, LocalRank rank) {
  const Group& group = *nodes_[index(id)].group;
  const Worker& worker = group.workers[index(rank.value())];
  if (worker.alive) return;
  const auto see = [this, id, generation = group.generation, rank, status = *worker.status] {
    on_group_thread(id, generation, [this, id, generation, rank, status](const Group&) {
      see_exit(id, generation, rank, status);
    });
  };
  timeline_.after(Duration(0), see);
}

// Some of those that are held end, at once or while the others are stopped.
void World::lose_held(int id) {
  for (const LocalRank rank : nodes_[index(id)].group->shell->group().held()) {
    if (options_.steady || !random_.chance(10)) continue;
    const Duration soon = 4 * options_.delay_max;
    lose_kept(id, rank, random_.chance(50) ? soon : options_.stop_grace + Duration(kWaitAfterKill));
  }
}

// A process that is kept ends, perhaps with something left behind.
void World::lose_kept(int id, LocalRank rank, Duration within) {
  const bool leaves = random_.chance(30);
  const auto helper = static_cast<Helpers>(random_.between(0, 3));
  const Duration lives = random_.between(Duration(0), Duration(seconds(60)));
  timeline_.after(
      random_.between(Duration(0), within),
      [this, id, rank, leaves, helper, lives, generation = nodes_[index(id)].group->generation] {
        Group* group = group_of(id, generation);
        if (group == nullptr) return;
        Worker& worker = group->workers[index(rank.value())];
        if (!worker.alive || (worker.joined && !group->ending())) return;
        worker.leaves_helper = worker.leaves_helper || leaves;
        if (leaves) worker.helper = helper;
        if (leaves) worker.helper_lives = lives;
        exit_worker(id, generation, rank, ExitStatus::signaled(SIGKILL));
      });
}

}  // namespace ddprun::sim

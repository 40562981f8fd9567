// Workers of the simulated world that are kept from one round to the next (--restart=failed). While
// all ranks of the round before live, they leave it when they like, at the end of a step; one that
// is gone makes the others wait in it until they are told.
#include <algorithm>
#include <csignal>
#include <utility>

#include "base/limits.hpp"
#include "tests/sim/world.hpp"

namespace ddprun::sim {

namespace {
// Until those that wait for a rank that is gone are told so, over the slowest wires.
constexpr Duration kFreedWithin = seconds(8);
}  // namespace

// What it is told of, it takes some time later, or never, or it ends.
void World::tell_round(int id, int generation, LocalRank rank) {
  Group& group = *nodes_[index(id)].group;
  Worker& told = group.workers[index(rank.value())];
  require(told.awaited, "a worker that has ended is told of a round");
  told.told_all_live = group.grows;
  if (told.in_last_step && group.grows) return;  // it ends before it takes another round
  const int fate = options_.steady ? 1 : random_.between(1, 100);
  if (fate > 95) return;
  const Duration time = random_.between(Duration(0), fate > 90 ? 2 * kRejoin : milliseconds(50));
  timeline_.after(time, [this, id, generation, rank, fate] {
    if (group_of(id, generation) == nullptr) return;
    if (fate <= 85) return take_round(id, generation, rank);
    const auto status = fate > 88 ? ExitStatus::exited(0) : ExitStatus::signaled(SIGSEGV);
    const bool may = !group_of(id, generation)->workers[index(rank.value())].joined;
    return may ? fail_unjoined(id, generation, rank, status) : void();
  });
}

// While all ranks of the round before live, all leave that after a step; else those that were not
// told so wait in it.
void World::take_round(int id, int generation, LocalRank rank) {
  const Group& group = *group_of(id, generation);
  Worker& worker = group_of(id, generation)->workers[index(rank.value())];
  if (!worker.alive || worker.joined) return;  // another one is in its place
  const bool waits = worker.told_all_live && worker.trains_in &&
                     rank_gone_.find(*worker.trains_in) != rank_gone_.end();
  if (waits) return;
  worker.joined = true;
  worker.trains_in = key_of(group.round.stamp);
  on_group_thread(id, generation, [rank](const Group& its) { its.driver->joined(rank); });
}

// All ranks of a round end with 0 at times of their own, since they agreed to; one that is freed
// meanwhile has not done so.
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
    const bool freed = !worker.joined && !node.group->grows;
    if (worker.number != number || !worker.alive || worker.signal != 0 || freed) continue;
    exit_worker(id, node.group->generation, LocalRank(rank), ExitStatus::exited(0));
  }
}

/// Whether its workers live, or have finished, and the round that its agent knows grows from
/// theirs.
bool World::is_before_growth(int id) const {
  const Node& node = nodes_[index(id)];
  const protocol::StartRound& told = checker_.told(node.process);
  const int round = node.group->round.stamp.number.value();
  return told.grows && told.stamp.number.value() == round + 1;
}

bool World::finished_before(const Group& group) {
  return std::all_of(group.workers.begin(), group.workers.end(), [](const Worker& worker) {
    return !worker.joined && worker.status && worker.status->success();
  });
}

// Of a round that grows it is a failure.
void World::fail_unjoined(int id, int generation, LocalRank rank, ExitStatus status) {
  const Group& group = *group_of(id, generation);
  const bool fails = group.grows && !group.ending() && !status.success();
  if (fails) checker_.on_group_failed(group.round.stamp);
  exit_worker(id, generation, rank, status);
}

// Over its link, some time after its start.
void World::say_survives(int id, int generation, LocalRank rank) {
  const int number = group_of(id, generation)->workers[index(rank.value())].number;
  timeline_.after(random_.between(Duration(0), seconds(1)), [this, id, generation, rank, number] {
    on_group_thread(id, generation, [rank, number](const Group& its) {
      const Worker& worker = its.workers[index(rank.value())];
      if (worker.awaited && worker.number == number) its.driver->survives(rank);
    });
  });
}

// Of a worker that did not take its round in time: that must not be because it waits in a
// collective for one that is gone, and was not told so.
void World::check_freed(int id, int generation, LocalRank rank) const {
  const Group& group = *nodes_[index(id)].group;
  const Worker& worker = group.workers[index(rank.value())];
  if (group.generation != generation || !worker.told_all_live || worker.joined) return;
  if (!worker.trains_in) return;
  const auto gone = rank_gone_.find(*worker.trains_in);
  const TimePoint due = now() - kFreedWithin;
  const bool long_gone = gone != rank_gone_.end() && gone->second <= due;
  if (!long_gone || !undisturbed_since(due)) return;
  const bool lives = run_ && run_->phase() == round::Phase::kRunning &&
                     run_->status(now()).round.number == group.round.stamp.number;
  require(!lives, "a worker waits for a rank that is gone, and is not told");
}

// No process stood still, and no wire was cut, since then.
bool World::undisturbed_since(TimePoint when) const {
  if (disturbed_ > when || frozen_until_ > when || coordinator_paused_until_ > when) return false;
  return std::all_of(nodes_.begin(), nodes_.end(), [&](const Node& node) {
    return !node.partitioned && node.held.empty() && node.answers_from <= when &&
           node.paused_until <= when && node.output_stalled_until <= when &&
           node.start_stalled_until <= when;
  });
}

// A process that has waited for a place is handed over like one that is kept.
void World::take_spares(Group& group, std::vector<LocalRank>& carried) {
  for (int rank = 0; rank < static_cast<int>(group.workers.size()); ++rank) {
    Worker& worker = group.workers[index(rank)];
    if (worker.alive || !worker.joined || !random_.chance(options_.spare_percent)) continue;
    worker.alive = worker.awaited = worker.survives = true;
    worker.joined = false;
    carried.emplace_back(rank);
  }
}

// It ended before this round, and its agent has not looked since.
void World::see_late_exit(int id, LocalRank rank) {
  const Group& group = *nodes_[index(id)].group;
  const Worker& worker = group.workers[index(rank.value())];
  if (worker.alive) return;
  const bool fails = group.grows && !worker.status->success();
  if (fails) checker_.on_group_failed(group.round.stamp);
  const auto see = [this, id, generation = group.generation, rank, status = *worker.status] {
    on_group_thread(id, generation, [this, id, generation, rank, status](const Group&) {
      see_exit(id, generation, rank, status);
    });
  };
  timeline_.after(Duration(0), see);
}

// Some of those that are held end, at once or while the others are stopped.
void World::lose_held(int id) {
  for (const LocalRank rank : nodes_[index(id)].group->driver->group().held()) {
    if (options_.steady || !random_.chance(10)) continue;
    const Duration soon = 4 * options_.delay_max;
    lose_kept(id, rank, random_.chance(50) ? soon : kStopGrace + Duration(kWaitAfterKill));
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
        fail_unjoined(id, generation, rank, ExitStatus::signaled(SIGKILL));
      });
}

}  // namespace ddprun::sim

// Rounds of the simulated world. What a round must never do, whatever happens to it, is checked
// here.
#include <algorithm>
#include <csignal>
#include <utility>

#include "agent/node/kill_order.hpp"
#include "agent/node/worker_group.hpp"
#include "base/limits.hpp"
#include "base/pipe_end.hpp"
#include "tests/sim/round_shell.hpp"

namespace ddprun::sim {

using State = ddprun::GroupState;

World::Group* World::group_of(int id, int generation) {
  auto& group = nodes_[index(id)].group;
  return group && group->generation == generation ? &*group : nullptr;
}

bool World::Group::ending() const {
  return shell->group().state() > GroupState::kHealthy;
}

bool World::Group::started() const {
  for (int rank = 0; rank < static_cast<int>(workers.size()); ++rank) {
    const WorkerRecord& record = shell->group().worker(LocalRank(rank));
    using Life = WorkerRecord::Life;
    if (record.life == Life::kRunning || record.life == Life::kHeld || record.status) return true;
    if (record.again) return true;  // a carried one was
  }
  return false;
}

void World::start_group(int id, const protocol::StartRound& round) {
  Node& node = nodes_[index(id)];
  require(!node.group, "workers of two rounds on one node");
  require(!node.holds_unkillable, "a round is started beside what SIGKILL did not end");
  checker_.on_group_started(node.process, round);
  say(node.options.host + " starts its workers of round " +
      std::to_string(round.stamp.number.value()));
  Group group;
  group.round = round;
  group.generation = ++generations_;
  group.workers.resize(index(node.options.workers));
  group.grace = options_.stop_grace;
  WorkerGroup::Options options{node.options.workers, options_.stop_grace};
  options.failure_grace = kFailureGrace;
  options.may_be_last = round.may_be_last;
  if (options_.survivor_percent) options.rejoin_timeout = kRejoin;
  for (auto& [rank, worker] : std::exchange(node.carried, {})) {
    options.carried.emplace_back(rank);
    if (worker.is_spare) options.spares.emplace_back(rank);
    group.workers[index(rank)] = worker;
    group.workers[index(rank)].joined = false;
  }
  options.finished = node.trained.finished;
  group.all_carried = options.carried.size() + options.finished.size() == group.workers.size() &&
                      node.trained.round.value() == round.stamp.number.value() - 1;
  if (options_.spare_percent > 0) take_spares(group, options);
  using Elsewhere = LocalRound::Elsewhere;
  group.shell = std::make_shared<RoundShell>(
      *this, id, group.generation,
      LocalRound::Options{round.stamp.number,
                          options,
                          {},
                          round.group_size > 1 ? Elsewhere::kRanks : Elsewhere::kNoRanks,
                          node.trained.round});
  node.group = std::move(group);
  for (const LocalRank rank : options.carried) {
    if (!options_.steady && random_.chance(5)) lose_kept(id, rank, 2 * options_.spawn_max);
    see_late_exit(id, rank);
  }
  node.group->shell->feed(local::Begin{});
}

void World::stop_group(int id, const client::StopGroup& order) {
  const Node& node = nodes_[index(id)];
  if (!node.group) return;  // it has just ended: that is in the queue behind this order
  Group& group = *nodes_[index(id)].group;
  require(order.round == group.round.stamp.number, "another round's workers are stopped");
  const bool news = !group.ending();
  const protocol::RoundStamp stamp = group.round.stamp;
  if (news) {
    say(node.options.host + " stops its workers of round " + std::to_string(stamp.number.value()));
    group.grace = order.grace;
  }
  group.ordered_to_stop = true;
  if (news) group.spared = order.after_failure;
  if (!order.after_failure) group.spared = false;
  group.requested = group.requested || (order.requested && news);
  if (order.look) group.shell->feed(local::LookAsked{});
  if (order.then == client::StopGroup::Then::kEnd) before_stop(id);
  group.shell->feed(local::stop_ordered(order));
  check_stop_of_none(id);
  if (news) disturb_peers(stamp, id);
}

// Those that are held have their own grace.
void World::before_stop(int id) {
  Group& group = *nodes_[index(id)].group;
  if (group.shell->group().held().empty()) return;
  group.forget_stop();
  group.grace = options_.stop_grace;
}

void World::pass_stop_signal(int id, int signal) {
  before_stop(id);
  Group& group = *nodes_[index(id)].group;
  ++group.stop_signals;
  group.spared = false;
  group.requested = group.requested || !group.ending();  // the limits of a stop stay
  group.shell->feed(StopRequested{signal});
  check_stop_of_none(id);
}

void World::check_stop_of_none(int id) const {
  const Group& group = *nodes_[index(id)].group;
  require(group.started() || group.shell->group().over(), "a stop waits for files");
}

// A second stop signal asks for it. After a success the limits are others, and what is left is no
// worker.
void World::check_kill(int id) const {
  const Node& node = nodes_[index(id)];
  const Group& group = *node.group;
  if (group.stop_signals > 1 || group.succeeded) return;
  require(group.stop_began.has_value(), "SIGKILL before any other signal");
  const TimePoint since =
      std::min(*group.stop_began, group.stopping_since.value_or(TimePoint::max()));
  // What a dead worker left does not delay a restart, but a user's stop.
  const WorkerGroup& its = group.shell->group();
  const bool requested = group.requested && !its.first_failure();  // that began the stop
  const bool whole = requested || !its.running().empty();
  const Duration grace = whole ? group.grace : std::min(kStragglerGrace, options_.stop_grace);
  const Duration had = node.clock.local(now()) - since;
  require(had >= grace, node.options.host + ": SIGKILL after " +
                            std::to_string(had / std::chrono::milliseconds(1)) +
                            " ms of the grace");
}

// What they do about the loss of a peer is not cut off.
void World::check_spared(int id) const {
  const Node& node = nodes_[index(id)];
  const Group& group = *node.group;
  const WorkerGroup& its = group.shell->group();
  if (!group.spared || !group.stopping_since || its.running().empty()) return;
  require(
      node.clock.local(now()) - *group.stopping_since >= kFailureGrace,
      node.options.host + " stops a worker before the failure grace of a run that ends is over");
}

// Nothing lives but what the result names, and that nothing could end.
void World::check_round_over(int id, const RoundResult& result) const {
  const Group& group = *nodes_[index(id)].group;
  const auto named = [&](int rank) {
    return std::any_of(result.unkillable.begin(), result.unkillable.end(),
                       [rank](const auto& one) { return one.worker.local_rank.value() == rank; });
  };
  for (int rank = 0; rank < static_cast<int>(group.workers.size()); ++rank) {
    const Worker& worker = group.workers[index(rank)];
    const auto released = group.shell->round().released();
    const bool goes_on =
        std::find(released.begin(), released.end(), LocalRank(rank)) != released.end();
    const bool left = worker.helper_alive && !goes_on;
    const bool stuck = left && worker.helper == Helpers::kUnkillable;
    require(!goes_on || worker.survives, "a worker that does not survive is kept");
    require(!worker.alive || worker.unkillable || goes_on,
            "a round is over and a worker of it lives");
    require(!left || stuck, "a round is over and what a worker left behind lives");
    require(named(rank) == ((worker.alive && !goes_on) || stuck),
            "what SIGKILL did not end is not told");
  }
  require(!group.shell->round().failure_is_unreported(),
          "a round is over before its failure was told");
}

// Whatever a process does: the signals, their times, and what the files of a failure say.
void World::check_stop_is_bounded(int id) const {
  const Node& node = nodes_[index(id)];
  const Group& group = *node.group;
  const TimePoint local = node.clock.local(now());
  // Beside what SIGKILL does not end, those that were held are stopped after all, and what each of
  // them leaves when it ends meanwhile has the time that follows SIGKILL.
  const int stops = options_.survivor_percent ? 2 : 1;
  const int held = options_.survivor_percent ? node.options.workers : 0;
  if (!group.stop_began || node.clock.local(node.paused_until) >= *group.stop_began) return;
  require(local - *group.stop_began <=
              stops * (group.grace + kStacksBeforeKill + kPipeEndWait + kWaitAfterKill) +
                  held * kWaitAfterKill + kEvidenceMax + seconds(1),
          "the stop of a round takes without end");
}

Duration World::spawn_time(int id) {
  return random_.between(options_.spawn_min, options_.spawn_max) /
         nodes_[index(id)].options.workers;
}

Duration World::evidence_time(int id) {
  const TimePoint stalled_until = nodes_[index(id)].start_stalled_until;
  Duration time(0);
  if (options_.evidence_max > time) time = random_.between(time, options_.evidence_max);
  if (now() >= stalled_until) return time;
  return std::max(time, std::min<Duration>(kEvidenceMax, stalled_until - now()));
}

void World::on_group_step(int id) {
  Group& group = *nodes_[index(id)].group;
  const State now_in = group.shell->group().state();
  if (now_in == State::kHolding || now_in == State::kReleased) group.forget_stop();
  if (now_in == State::kStopping && !group.stopping_since) {
    group.stopping_since = nodes_[index(id)].clock.local(now());
    // A failure that was held back may become known as another stop is ordered, which ends it.
    const bool begins = group.shell->group().spared_until().has_value();
    if (begins && !group.ordered_to_stop && group.stop_signals == 0) group.spared = true;
  }
  if (!group.ending() || group.told_to_end) return;
  group.told_to_end = now();
  lose_held(id);
  const State state = group.shell->group().state();
  const bool stops = state != State::kSucceeded && state != State::kStraggling;
  const WorkerGroup& its = group.shell->group();
  const bool asked = group.ordered_to_stop || group.stop_signals > 0;
  const bool by_itself = stops && !asked && !its.first_failure() && !its.spawn_failure();
  if (by_itself) checker_.on_group_given_up(group.round.stamp);
  const bool before = its.state() == State::kReleased && is_before_join(id);
  const auto then = before ? Checker::Then::kReleased : Checker::Then::kEnds;
  if (stops) checker_.on_stopping(group.round.stamp, then, now());
}

void World::group_runs(int id, int generation) {
  Group* group = group_of(id, generation);
  group->running = true;
  const protocol::StartRound round = group->round;
  record(id, Seen::kRuns);
  feed(id, client::GroupRunning{round.stamp.number});
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

void World::check_success(int id) {
  Node& node = nodes_[index(id)];
  const Round round = node.group->round.stamp.number;
  node.group->succeeded = true;
  node.group->succeeded_at = now();
  checker_.on_group_succeeded(node.process, round);
  say(node.options.host + "'s workers ended with 0");
}

void World::group_over(int id, int generation) {
  on_group_thread(id, generation, [this, id](const Group& group) {
    if (!group.shell->round().over())
      return;  // what was released was taken back: this follows again
    Node& node = nodes_[index(id)];
    const RoundResult result = group.shell->result();
    check_round_over(id, result);
    record(id, Seen::kOver);
    const Round round = group.round.stamp.number;
    const bool stopped = result.state != State::kSucceeded;
    node.holds_unkillable = stopped && !result.unkillable.empty();
    for (const LocalRank rank : group.shell->round().released()) {
      Worker& carried = node.carried[rank.value()] = group.workers[index(rank.value())];
      carried.is_spare = group.shell->group().worker(rank).is_spare;
    }
    node.trained = group.shell->round().trained();
    node.group.reset();
    checker_.on_group_gone(node.process);
    const std::string alive = result.unkillable_worker();
    if (!alive.empty()) expect_leave(id, alive);
    feed(id, node::GroupOver{round, result});
    require(node.carried.empty(), "workers are released, and no round takes them over");
  });
}

}  // namespace ddprun::sim

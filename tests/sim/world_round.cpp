// Rounds of the simulated world: the real RoundDriver of each node, on ports that work with
// modelled processes and files. What a round must never do, whatever happens to it, is checked
// here.
#include <algorithm>
#include <csignal>
#include <utility>

#include "agent/node/kill_order.hpp"
#include "agent/node/worker_group.hpp"
#include "agent/watch/device_release.hpp"
#include "base/limits.hpp"
#include "base/pipe_end.hpp"
#include "tests/sim/world.hpp"

namespace ddprun::sim {

using State = ddprun::GroupState;

class World::GroupPorts final : public RoundPorts {
 public:
  GroupPorts(World& world, int id, int generation)
      : world_(world), id_(id), generation_(generation) {}

  [[nodiscard]] TimePoint now() const override { return node().clock.local(world_.now()); }
  void open_files() override {
    group().opening = true;
    const TimePoint answers = std::max(world_.now(), node().start_stalled_until);
    at(answers + world_.spawn_time(id_), [](Group& its) {
      if (std::exchange(its.opening, false)) its.driver->files_opened({}, {});
    });
  }
  void give_up_files() override { group().opening = false; }
  // The driver takes a moment longer than a folder that stalls, within its limit.
  [[nodiscard]] bool await_devices() override {
    const TimePoint answers = node().start_stalled_until;
    if (group().round.stamp.number == Round(1) || world_.now() >= answers) return false;
    group().devices_held = true;
    const TimePoint released =
        std::min(answers + milliseconds(50), world_.now() + kDeviceReleaseMax);
    at(released, [](Group& its) {
      its.devices_held = false;
      its.driver->devices_released();
    });
    return true;
  }
  void post_spawn(LocalRank rank) override {
    at(world_.now() + world_.spawn_time(id_),
       [rank](const Group& its) { its.driver->spawn_due(rank); });
  }
  [[nodiscard]] Result<void> start_worker(LocalRank rank) override {
    require(!group().ending(), "a worker is started in a round that is being stopped");
    require(!group().devices_held, "a worker is started while devices are waited for");
    if (std::exchange(node().spawn_breaks, false)) {
      return Error(ErrorKind::kNotFound, "no such program");
    }
    Worker& worker = group().workers[index(rank.value())];
    require(!worker.alive && !worker.helper_alive,
            "a worker is started in the place of one that is not gone");
    worker = Worker();
    worker.alive = worker.awaited = true;
    const auto& percent = world_.options_.survivor_percent;
    worker.survives = percent && world_.random_.chance(*percent);
    worker.number = ++world_.workers_;
    worker.trains_in = key_of(group().round.stamp);
    if (worker.survives) world_.say_survives(id_, generation_, rank);
    return {};
  }
  [[nodiscard]] bool survives(LocalRank rank) const override {
    return group().workers[index(rank.value())].survives;
  }
  [[nodiscard]] bool tell_round(LocalRank rank) override {
    world_.tell_round(id_, generation_, rank);
    return true;
  }
  void signal_group(LocalRank rank, int signal) override {
    const bool ending = group().ending();  // else of one that has not joined
    if (ending && signal == SIGKILL) world_.check_kill(id_);
    if (ending && !group().stop_began) {
      world_.check_spared(id_);
      group().stop_began = now();
    }
    if (ending) world_.record(id_, Seen::kStops);
    world_.signal_worker(id_, generation_, rank, signal);
  }
  [[nodiscard]] bool may_handle(LocalRank, int) const override { return false; }
  void signal_worker(LocalRank, int) override {}
  // Some run Python, and of these some are stuck in a place that no signal reaches.
  [[nodiscard]] std::vector<LocalRank> abort_with_stacks(
      const std::vector<LocalRank>& ranks) override {
    world_.check_kill(id_);
    require(group().stop_signals == 0, "stacks are waited for although a user stops the run");
    std::vector<LocalRank> asked;
    for (const LocalRank rank : ranks) {
      if (world_.random_.chance(50)) continue;
      asked.push_back(rank);
      world_.abort_worker(id_, generation_, rank);
    }
    return asked;
  }
  void arm_timer(TimePoint deadline) override {
    const int timer = ++group().timer;
    at(node().clock.global(deadline), [timer, deadline](const Group& its) {
      if (its.timer == timer) its.driver->timer_expired(deadline);
    });
  }
  void cancel_timer() override { ++group().timer; }
  [[nodiscard]] WorkerName name_of(LocalRank rank) const override {
    const int base = group().round.rank_base.value();
    return {Rank(base + rank.value()), rank, 1000 + id_, node().options.host};
  }
  [[nodiscard]] WorkerExit describe_exit(LocalRank rank) const override {
    WorkerExit exit;
    exit.worker = name_of(rank);
    return exit;
  }
  [[nodiscard]] std::vector<std::string> left_behind(LocalRank rank) const override {
    const bool left = group().workers[index(rank.value())].helper_alive;
    return left ? std::vector<std::string>{"helper"} : std::vector<std::string>();
  }
  // A log on a slow disk is read later, or in vain.
  void look_for_complaint(LocalRank rank, const ExitStatus& /*status*/) override {
    std::optional<Complaint> complaint;
    if (group().workers[index(rank.value())].complains) {
      complaint.emplace().kind = ComplaintKind::kLostPeer;
    }
    const Duration time = std::min<Duration>(kComplaintMax, world_.evidence_time(id_));
    if (time == Duration(0)) return group().driver->complaint_found(rank, complaint);
    at(world_.now() + time,
       [rank, complaint](const Group& its) { its.driver->complaint_found(rank, complaint); });
  }
  void arm_hearing(TimePoint deadline) override {
    at(node().clock.global(deadline), [](const Group& its) { its.driver->hearing_over(); });
  }
  [[nodiscard]] std::vector<RankFacts> look_at_ranks() override {
    std::vector<RankFacts> ranks(group().workers.size());
    for (int i = 0; i < static_cast<int>(ranks.size()); ++i) {
      ranks[index(i)].rank = name_of(LocalRank(i)).rank;
      ranks[index(i)].local_rank = LocalRank(i);
    }
    return ranks;
  }
  [[nodiscard]] std::vector<StuckProcess> stuck(LocalRank) const override { return {}; }
  [[nodiscard]] int descendants_ended(LocalRank) const override { return 0; }
  void catch_up(LocalRank) override {}
  void look_for_evidence(LocalRank) override {
    const auto found = [](const Group& its) {
      its.driver->evidence_found({std::nullopt, "the last line"});
    };
    const Duration time = world_.evidence_time(id_);
    if (time == Duration(0)) return found(group());
    at(world_.now() + time, found);
  }
  void on_event(const GroupEvent& event) override {
    const State state = group().driver->group().state();
    if (WorkerGroup::possible(state, event)) return;
    require(false, "the agent of " + node().options.host + " would abort: event " +
                       std::to_string(event.index()) + " of a group in state " +
                       std::to_string(static_cast<int>(state)));
  }
  void on_step() override { world_.on_group_step(id_); }
  void log_failure(const WorkerExit&, int) override {}
  void log_stop(int, int) override {}
  void log_left_behind(const LeftBehindFacts& facts) override {
    require(!facts.names.empty(), "nothing was left behind, and is told");
  }
  void tell(client::Event event) override {
    if (std::holds_alternative<client::GroupRunning>(event)) {
      return world_.group_runs(id_, generation_);
    }
    if (std::holds_alternative<client::GroupSucceeded>(event)) world_.check_success(id_);
    if (const auto* before = std::get_if<client::FinishedBefore>(&event)) {
      world_.say(node().options.host + "'s workers ended with 0, in the round before");
      world_.checker_.on_finished_before(node().process, before->finished, node().options.workers);
    }
    world_.drive(id_, [&](NodeDriver& driver) { driver.feed(event); });
  }
  void spawn_failed(const SpawnFailed& failure) override {
    const std::string& sentence = failure.error.sentence;
    world_.expect_leave(id_, sentence);
    world_.drive(id_, [&](NodeDriver& driver) { driver.fail_to_spawn(127, sentence); });
  }
  // The last output is read, which takes longer where a console stalls.
  void round_over() override {
    world_.check_stop_is_bounded(id_);
    const Duration most = world_.options_.drain_max;
    const Duration time =
        most > Duration(0) ? world_.random_.between(Duration(0), most) : Duration(0);
    world_.timeline_.after(time, [&world = world_, id = id_, generation = generation_] {
      world.group_over(id, generation);
    });
  }

 private:
  [[nodiscard]] Node& node() const { return world_.nodes_[index(id_)]; }
  [[nodiscard]] Group& group() const { return *node().group; }
  template <class What>
  void at(TimePoint when, What what) {
    world_.timeline_.at(when, [&world = world_, id = id_, generation = generation_, what] {
      world.on_group_thread(id, generation, what);
    });
  }

  World& world_;
  int id_;
  int generation_;
};

World::Group* World::group_of(int id, int generation) {
  auto& group = nodes_[index(id)].group;
  return group && group->generation == generation ? &*group : nullptr;
}

bool World::Group::started() const {
  for (int rank = 0; rank < static_cast<int>(workers.size()); ++rank) {
    const WorkerRecord& record = driver->group().worker(LocalRank(rank));
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
  group.grace = kStopGrace;
  group.ports = std::make_unique<GroupPorts>(*this, id, group.generation);
  WorkerGroup::Options options{node.options.workers, kStopGrace};
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
  using Elsewhere = RoundDriver::Elsewhere;
  group.driver = std::make_unique<RoundDriver>(
      *group.ports, round.stamp.number, options, group.ports->now(),
      round.group_size > 1 ? Elsewhere::kRanks : Elsewhere::kNoRanks, node.trained.round);
  node.group = std::move(group);
  for (const LocalRank rank : options.carried) {
    if (!options_.steady && random_.chance(5)) lose_kept(id, rank, 2 * options_.spawn_max);
    see_late_exit(id, rank);
  }
  node.group->driver->begin();
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
  if (order.look) group.driver->look();
  if (order.then == client::StopGroup::Then::kEnd) before_stop(id);
  group.driver->end(order);
  check_stop_of_none(id);
  if (news) disturb_peers(stamp, id);
}

// Those that are held have their own grace.
void World::before_stop(int id) {
  Group& group = *nodes_[index(id)].group;
  if (group.driver->group().held().empty()) return;
  group.forget_stop();
  group.grace = kStopGrace;
}

void World::pass_stop_signal(int id, int signal) {
  before_stop(id);
  Group& group = *nodes_[index(id)].group;
  ++group.stop_signals;
  group.spared = false;
  group.requested = group.requested || !group.ending();  // the limits of a stop stay
  group.driver->request_stop(signal);
  check_stop_of_none(id);
}

void World::check_stop_of_none(int id) const {
  const Group& group = *nodes_[index(id)].group;
  require(group.started() || group.driver->group().over(), "a stop waits for files");
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
  const WorkerGroup& its = group.driver->group();
  const bool requested = group.requested && !its.first_failure();  // that began the stop
  const bool whole = requested || !its.running().empty();
  const Duration grace = whole ? group.grace : kStragglerGrace;
  const Duration had = node.clock.local(now()) - since;
  require(had >= grace, node.options.host + ": SIGKILL after " +
                            std::to_string(had / std::chrono::milliseconds(1)) +
                            " ms of the grace");
}

// What they do about the loss of a peer is not cut off.
void World::check_spared(int id) const {
  const Node& node = nodes_[index(id)];
  const Group& group = *node.group;
  const WorkerGroup& its = group.driver->group();
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
    const auto released = group.driver->released();
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
  require(!group.driver->failure_is_unreported(), "a round is over before its failure was told");
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
  if (!group.stop_began || node.paused_until >= now() - kStopGrace) return;
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
  const State now_in = group.driver->group().state();
  if (now_in == State::kHolding || now_in == State::kReleased) group.forget_stop();
  if (now_in == State::kStopping && !group.stopping_since) {
    group.stopping_since = nodes_[index(id)].clock.local(now());
    // A failure that was held back may become known as another stop is ordered, which ends it.
    const bool begins = group.driver->group().spared_until().has_value();
    if (begins && !group.ordered_to_stop && group.stop_signals == 0) group.spared = true;
  }
  if (!group.ending() || group.told_to_end) return;
  group.told_to_end = now();
  lose_held(id);
  const State state = group.driver->group().state();
  const bool stops = state != State::kSucceeded && state != State::kStraggling;
  const WorkerGroup& its = group.driver->group();
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
  drive(id, [&](NodeDriver& driver) { driver.feed(client::GroupRunning{round.stamp.number}); });
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
    if (!group.driver->over()) return;  // what was released was taken back: this follows again
    Node& node = nodes_[index(id)];
    const RoundResult result = group.driver->result();
    check_round_over(id, result);
    record(id, Seen::kOver);
    const Round round = group.round.stamp.number;
    const bool stopped = result.state != State::kSucceeded;
    node.holds_unkillable = stopped && !result.unkillable.empty();
    for (const LocalRank rank : group.driver->released()) {
      Worker& carried = node.carried[rank.value()] = group.workers[index(rank.value())];
      carried.is_spare = group.driver->group().worker(rank).is_spare;
    }
    node.trained = group.driver->trained();
    node.group.reset();
    checker_.on_group_gone(node.process);
    const std::string alive = result.unkillable_worker();
    if (!alive.empty()) expect_leave(id, alive);
    drive(id, [&](NodeDriver& driver) { driver.group_over(round, result); });
    require(node.carried.empty(), "workers are released, and no round takes them over");
  });
}

}  // namespace ddprun::sim

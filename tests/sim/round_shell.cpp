// What a simulated round does for its LocalRound.
#include "tests/sim/round_shell.hpp"

namespace ddprun::sim {

LocalRound World::RoundShell::at_its_time(LocalRound::Options options) const {
  options.run_started = now();
  return {std::move(options), now()};
}

void World::RoundShell::feed(local::Event event) {
  events_.push_back(std::move(event));
  if (std::exchange(feeding_, true)) return;
  const auto self = shared_from_this();  // an action may end the agent
  const auto lives = [this] { return world_.group_of(id_, generation_) != nullptr; };
  while (!events_.empty() && lives()) {
    const local::Event next = std::move(events_.front());
    events_.pop_front();
    const local::Actions actions = round_.step(next, now());
    world_.on_group_step(id_);
    for (const local::Action& action : actions) {
      if (lives()) std::visit([this](const auto& one) { act(one); }, action);
    }
  }
  feeding_ = false;
}

void World::RoundShell::later(TimePoint when, local::Event event) {
  world_.timeline_.at(when, [&world = world_, id = id_, generation = generation_, event] {
    world.on_group_thread(id, generation,
                          [event](const Group& group) { group.shell->feed(event); });
  });
}

void World::RoundShell::act(const local::OpenFiles&) {
  its().opening = true;
  const TimePoint answers = std::max(world_.now(), node().start_stalled_until);
  world_.timeline_.at(answers + world_.spawn_time(id_),
                      [&world = world_, id = id_, generation = generation_] {
                        world.on_group_thread(id, generation, [](Group& group) {
                          if (!std::exchange(group.opening, false)) return;
                          group.shell->feed(local::FilesOpened{});
                        });
                      });
}

// The driver takes a moment longer than a folder that stalls, within its limit.
void World::RoundShell::act(const local::AwaitDevices&) {
  const TimePoint answers = node().start_stalled_until;
  if (its().round.stamp.number == Round(1) || world_.now() >= answers) {
    return feed(local::DevicesReleased{});
  }
  its().devices_held = true;
  const TimePoint released = std::min(answers + milliseconds(50), world_.now() + kDeviceReleaseMax);
  world_.timeline_.at(released, [&world = world_, id = id_, generation = generation_] {
    world.on_group_thread(id, generation, [](Group& group) {
      group.devices_held = false;
      group.shell->feed(local::DevicesReleased{});
    });
  });
}

void World::RoundShell::act(const local::PostSpawn& action) {
  later(world_.now() + world_.spawn_time(id_), local::SpawnDue{action.rank});
}

void World::RoundShell::act(const local::StartWorker& action) {
  events_.push_front(local::Started{action.rank, start_worker(action.rank)});
}

Result<void> World::RoundShell::start_worker(LocalRank rank) {
  require(!its().ending(), "a worker is started in a round that is being stopped");
  require(!its().devices_held, "a worker is started while devices are waited for");
  if (std::exchange(node().spawn_breaks, false)) {
    return Error(ErrorKind::kNotFound, "no such program");
  }
  Worker& worker = its().workers[index(rank.value())];
  require(!worker.alive && !worker.helper_alive,
          "a worker is started in the place of one that is not gone");
  worker = Worker();
  worker.alive = worker.awaited = true;
  const auto& percent = world_.options_.survivor_percent;
  worker.survives = percent && world_.random_.chance(*percent);
  worker.number = ++world_.workers_;
  worker.trains_in = key_of(its().round.stamp);
  if (worker.survives) world_.say_survives(id_, generation_, rank);
  return {};
}

void World::RoundShell::act(const local::TellRound& action) {
  // The link of one that is about to end may have ended before.
  const bool in_last_step = its().workers[index(action.rank.value())].in_last_step;
  const bool told = !in_last_step || world_.random_.chance(70);
  if (told) world_.tell_round(id_, generation_, action.rank);
  events_.push_front(local::Told{action.rank, told});
}

void World::RoundShell::act(const Signal& action) {
  const bool ending = its().ending();  // else of one that has not joined
  if (ending && action.signal == SIGKILL) world_.check_kill(id_);
  if (ending && !its().stop_began) {
    if (!round_.has_exited(action.rank)) world_.check_spared(id_);  // else to what it left
    its().stop_began = now();
  }
  if (ending) world_.record(id_, Seen::kStops);
  world_.signal_worker(id_, generation_, action.rank, action.signal);
}

// Some run Python, and of these some are stuck in a place that no signal reaches.
void World::RoundShell::act(const local::AskStacks& action) {
  world_.check_kill(id_);
  require(its().stop_signals == 0, "stacks are waited for although a user stops the run");
  StacksAsked asked;
  for (const LocalRank rank : action.ranks) {
    if (world_.random_.chance(50)) continue;
    asked.ranks.push_back(rank);
    world_.abort_worker(id_, generation_, rank);
  }
  events_.push_front(std::move(asked));
}

void World::RoundShell::act(const ArmTimer& action) {
  const int timer = ++its().timer;
  const TimePoint deadline = action.deadline;
  world_.timeline_.at(node().clock.global(deadline), [&world = world_, id = id_,
                                                      generation = generation_, timer, deadline] {
    world.on_group_thread(id, generation, [timer, deadline](const Group& group) {
      if (group.timer == timer) group.shell->feed(TimerExpired{deadline});
    });
  });
}

// A log on a slow disk is read later, or in vain.
void World::RoundShell::act(const local::LookForComplaint& action) {
  local::ComplaintFound found{action.rank};
  if (its().workers[index(action.rank.value())].complains) {
    found.complaint.emplace().kind = ComplaintKind::kLostPeer;
  }
  const Duration time = std::min<Duration>(kComplaintMax, world_.evidence_time(id_));
  if (time == Duration(0)) return feed(found);
  later(world_.now() + time, found);
}

void World::RoundShell::act(const local::ArmHearing& action) {
  later(node().clock.global(action.deadline), local::HearingOver{});
}

void World::RoundShell::act(const local::Look&) {
  local::Looked looked;
  looked.ranks.resize(its().workers.size());
  for (int i = 0; i < static_cast<int>(looked.ranks.size()); ++i) {
    looked.ranks[index(i)].rank = name_of(LocalRank(i)).rank;
    looked.ranks[index(i)].local_rank = LocalRank(i);
  }
  feed(std::move(looked));
}

void World::RoundShell::act(const local::LookForEvidence&) {
  local::EvidenceFound found{{std::nullopt, "the last line"}};
  const Duration time = world_.evidence_time(id_);
  if (time == Duration(0)) return feed(std::move(found));
  later(world_.now() + time, std::move(found));
}

void World::RoundShell::act(const local::Tell& action) {
  const client::Event& event = action.event;
  if (std::holds_alternative<client::GroupRunning>(event)) {
    return world_.group_runs(id_, generation_);
  }
  if (std::holds_alternative<client::GroupSucceeded>(event)) world_.check_success(id_);
  if (const auto* before = std::get_if<client::FinishedBefore>(&event)) {
    world_.say(node().options.host + "'s workers ended with 0, in the round before");
    world_.checker_.on_finished_before(node().process, before->finished, node().options.workers);
  }
  world_.feed(id_, event);
}

void World::RoundShell::act(const local::TellSpawnFailed& action) {
  const std::string& sentence = action.failure.error.sentence;
  world_.expect_leave(id_, sentence);
  world_.feed(id_, node::Failed{127, sentence});
}

// The last output is read, which takes longer where a console stalls.
void World::RoundShell::act(const local::Over&) {
  world_.check_stop_is_bounded(id_);
  const Duration most = world_.options_.drain_max;
  const Duration time =
      most > Duration(0) ? world_.random_.between(Duration(0), most) : Duration(0);
  world_.timeline_.after(time, [&world = world_, id = id_, generation = generation_] {
    world.group_over(id, generation);
  });
}

WorkerName World::RoundShell::name_of(LocalRank rank) const {
  const int base = its().round.rank_base.value();
  return {Rank(base + rank.value()), rank, 1000 + id_, node().options.host};
}

void World::RoundShell::exited(LocalRank rank, ExitStatus status, LeftBehind left) {
  local::Exited exit;
  exit.exit.worker = name_of(rank);
  exit.exit.status = status;
  exit.left = left;
  feed(std::move(exit));
}

void World::RoundShell::give_up(const GiveUp& order) {
  const auto rank = round_.rank_of(order);
  if (!rank) return;
  WorkerExit exit;
  exit.worker = name_of(*rank);
  feed(local::GiveUpAsked{order, std::move(exit)});
}

RoundResult World::RoundShell::result() const {
  std::vector<LocalRound::AtEnd> ends(its().workers.size());
  for (int rank = 0; rank < static_cast<int>(ends.size()); ++rank) {
    ends[index(rank)].worker = name_of(LocalRank(rank));
    if (its().workers[index(rank)].helper_alive) ends[index(rank)].left = {"helper"};
  }
  return round_.result(ends);
}

}  // namespace ddprun::sim

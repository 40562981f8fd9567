// The coordinator of the simulated world: the real Run, alone or in the process of node 0.
#include <algorithm>
#include <utility>

#include "tests/sim/sole_world.hpp"
#include "tests/sim/words.hpp"

namespace ddprun::sim {

using namespace protocol;

namespace {
/// States of the run are written with a capital letter, those of an agent's round without.
std::string capitalized(std::string name) {
  name[0] = static_cast<char>(name[0] - 'a' + 'A');
  return name;
}

}  // namespace

void SoleWorld::start_coordinator() {
  if (run_) return;
  ++coordinator_;
  round::RunOptions options{RunId("demo"), "c" + std::to_string(coordinator_)};
  run_ = std::make_unique<round::Run>(std::move(options));
  coordinator_timer_pending_ = false;
  run_terms_ = false;
  finished_ = false;
  phase_ = round::Phase::kForming;
  coordinator_clock_.rate =
      1.0 + 0.01 * random_.between(-options_.drift_percent, options_.drift_percent);
  coordinator_clock_.offset = seconds(random_.between(0, 100'000));
  say("coordinator starts");
}

void SoleWorld::crash_coordinator() {
  if (!run_) return;
  say("coordinator dies");
  run_.reset();
  checker_.on_coordinator_lost();
  for (const auto& [link, connection] : std::exchange(by_link_, {})) {
    Connection& one = *connections_[index(connection)];
    one.coordinator_open = false;
    one.up.closed = true;
    push(connection, Way::kDown, Fin{});
  }
}

void SoleWorld::pause_coordinator(Duration time) {
  if (place_ == Coordinator::kInRoot) return pause_agent(0, time);
  coordinator_paused_until_ = std::max(coordinator_paused_until_, now() + time);
  timeline_.at(coordinator_paused_until_, [this] { disturb(); });
  checker_.on_coordinator_paused(now(), coordinator_paused_until_);
}

void SoleWorld::freeze_coordinator_machine(Duration time) {
  if (frozen()) return;
  pause_coordinator(time);
  // What was sent meanwhile arrives a little after it runs again.
  frozen_until_ = now() + time + milliseconds(random_.between(1, 200));
  checker_.on_coordinator_frozen(frozen_until_);
  timeline_.at(frozen_until_, [this] {
    say("the coordinator's machine answers again");
    disturb();
    for (int id = 0; id < node_count(); ++id) resume_wires(id);
  });
}

TimePoint SoleWorld::coordinator_paused_until() const {
  const bool in_root = place_ == Coordinator::kInRoot;
  return in_root ? nodes_.front().paused_until : coordinator_paused_until_;
}

const DriftingClock& SoleWorld::coordinator_clock() const {
  return place_ == Coordinator::kInRoot ? nodes_.front().clock : coordinator_clock_;
}

void SoleWorld::arm_coordinator(TimePoint deadline) {
  coordinator_timer_pending_ = true;
  coordinator_timer(coordinator_, ++coordinator_timer_, coordinator_clock().global(deadline));
}

void SoleWorld::coordinator_timer(int coordinator, int timer, TimePoint when) {
  timeline_.at(when, [this, coordinator, timer] {
    const auto replaced = [&] {
      return coordinator_timer_ != timer || coordinator_ != coordinator || !run_;
    };
    if (replaced()) return;
    if (now() < coordinator_paused_until()) {
      return coordinator_timer(coordinator, timer, coordinator_paused_until());
    }
    // Everything that has arrived is read before an agent is blamed; that may move the timer, but
    // the expiry is on its way.
    coordinator_timer_pending_ = false;
    drain_arrived();
    if (coordinator_ == coordinator && run_) to_coordinator(coordinator, round::Tick{});
  });
}

void SoleWorld::to_coordinator(int coordinator, round::Event event) {
  if (!run_ || coordinator != coordinator_) return;
  if (now() < coordinator_paused_until()) {
    timeline_.at(coordinator_paused_until(), [this, coordinator, event = std::move(event)] {
      to_coordinator(coordinator, event);
    });
    return;
  }
  tell_coordinator(event);
}

void SoleWorld::tell_coordinator(const round::Event& event) {
  ++steps_;
  speaker_ = -1;
  if (const auto* received = std::get_if<round::Received>(&event)) {
    const auto found = by_link_.find(received->link.value());
    if (found == by_link_.end()) return;  // closed meanwhile: such a link is not read any more
    speaker_ = connections_[index(found->second)]->process;
    const auto* hello = std::get_if<Hello>(&received->message);
    if (hello != nullptr && hello->claim) checker_.on_claim(hello->claim->restarts);
  }
  if (const auto* lost = std::get_if<round::LinksLost>(&event)) {
    const auto found = by_link_.find(lost->links.front().link.value());
    if (found == by_link_.end()) return;  // closed meanwhile: it is no agent's link any more
    checker_.on_process_lost(connections_[index(found->second)]->process);
    by_link_.erase(found);
  }
  apply(run_->step(event, coordinator_clock().local(now())));
  if (speaker_ >= 0) check_left(std::get<round::Received>(event));
  require(coordinator_timer_pending_ || finished_ || !run_terms_,
          "the run waits without a deadline");
  const round::Phase phase = run_->phase();
  if (phase != phase_) {
    record_transition(capitalized(name_of(phase_)), capitalized(name_of(phase)));
    const bool goes_on = phase == round::Phase::kForming || phase == round::Phase::kRunning;
    if (phase_ == round::Phase::kStopping && goes_on) checker_.on_verdict_taken_back();
    phase_ = phase;
  }
  if (phase == round::Phase::kStopping || phase == round::Phase::kOver) {
    checker_.on_verdict_known(now());
  }
}

/// What a node says of its workers opens the next round's store to it, where all have one address.
void SoleWorld::check_left(const round::Received& received) {
  const auto found = by_link_.find(received.link.value());
  if (found == by_link_.end() || run_->rounds().last().number <= Round(1)) return;
  const Node& node = nodes_[index(connections_[index(found->second)]->node)];
  const Round before(run_->rounds().last().number.value() - 1);
  if (node.process != speaker_ || run_->may_have(agent_of(node), before)) return;
  if (!node.group || node.group->round.stamp.number > before) return;
  const auto& workers = node.group->workers;
  const bool lives = std::any_of(workers.begin(), workers.end(),
                                 [](const Worker& worker) { return worker.alive; });
  checker_.on_left(before, !lives);
}

bool SoleWorld::can_answer(const Connection& connection) const {
  return lives(connection.node, connection.process) && connection.agent_open &&
         !cut_off(connection.node) && now() >= nodes_[index(connection.node)].answers_from;
}

void SoleWorld::apply(const round::Actions& actions) {
  std::vector<Checker::Sent> rounds;
  std::map<round::LinkId, bool> requested;  // one stop may follow another
  for (const round::Action& action : actions) {
    if (const auto* sent = std::get_if<round::Send>(&action)) {
      if (const auto* stop = std::get_if<Stop>(&sent->message)) {
        requested.insert_or_assign(sent->link, stop->requested);
      }
      send(*sent, rounds);
    } else if (const auto* close = std::get_if<round::Close>(&action)) {
      requested.erase(close->link);  // it has left
      const auto found = by_link_.find(close->link.value());
      if (found != by_link_.end()) close_coordinator_end(found->second);
    } else if (const auto* timer = std::get_if<round::ArmTimer>(&action)) {
      run_terms_ = true;
      arm_coordinator(timer->deadline);
    } else if (const auto* note = std::get_if<round::Note>(&action)) {
      require(!note->text.empty(), "an empty note");
      say("coordinator: " + note->text);
    } else if (const auto* finish = std::get_if<round::Finish>(&action)) {
      finish_run(*finish);
    }
  }
  const auto differs = [&](const auto& one) { return one.second != requested.begin()->second; };
  require(std::none_of(requested.begin(), requested.end(), differs),
          "one stop asks some nodes to save, and not all");
  if (!rounds.empty()) checker_.on_rounds(rounds, now());
}

void SoleWorld::send(const round::Send& sent, std::vector<Checker::Sent>& rounds) {
  ++sends_;
  checker_.on_message(sent.message);
  run_terms_ = run_terms_ || !std::holds_alternative<Refused>(sent.message);
  const auto found = by_link_.find(sent.link.value());
  require(found != by_link_.end(), "a message to a link that is closed");
  const Connection& connection = *connections_[index(found->second)];
  const auto* refused = std::get_if<Refused>(&sent.message);
  const bool blamed = refused != nullptr && refused->code == RefusalCode::kNotAnswering;
  require(!blamed || !can_answer(connection), "an agent that answers was sent away");
  if (const auto* start = std::get_if<StartRound>(&sent.message)) {
    const NodeOptions& to = nodes_[index(connection.node)].options;
    rounds.push_back({connection.process, to.workers, to.role, to.fingerprint, *start});
  }
  if (const auto* hang = std::get_if<Hang>(&sent.message)) on_hang_sent(connection.node, *hang);
  push(found->second, Way::kDown, through_codec(sent.message));
}

// An agent that is still connected had its time to go.
void SoleWorld::finish_run(const round::Finish& finish) {
  require(!finish.reason.empty(), "an end without a reason");
  finished_ = true;
  say("run is over with " + std::to_string(finish.exit_code));
  while (!by_link_.empty()) close_coordinator_end(by_link_.begin()->second);
  if (place_ != Coordinator::kInRoot || !nodes_.front().ended) return;
  timeline_.after(Duration(0),
                  [this, process = nodes_.front().process] { end_process(0, process); });
}

}  // namespace ddprun::sim

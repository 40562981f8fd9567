#include "rendezvous/client/membership.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/exit_status.hpp"
#include "base/format.hpp"
#include "base/limits.hpp"
#include "base/signals.hpp"
#include "rendezvous/client/membership/sense.hpp"
#include "rendezvous/protocol/limits.hpp"
#include "rendezvous/protocol/names.hpp"

namespace ddprun::client {

using namespace protocol;

Membership::Membership(MembershipOptions options, TimePoint start)
    : options_(std::move(options)),
      start_(start),
      now_(start),
      reach_{start, start},
      stores_(options_.failure_grace + options_.hello.stop_timeout + kStopMargin) {
  search_.also_asks(options_.hosts);
}

Actions Membership::begin(TimePoint now) {
  now_ = std::max(now_, now);
  stores_.open(actions_);
  wait_for_coordinator("");
  arm();
  return std::exchange(actions_, {});
}

Actions Membership::step(const Event& event, TimePoint now) {
  if (ended()) return {};
  now_ = std::max(now_, now);
  actions_.clear();
  std::visit([this](const auto& alternative) { on(alternative); }, event);
  if (!ended()) arm();
  return std::exchange(actions_, {});
}

std::array<std::string_view, 4> Membership::state_names() const {
  return {name_of(state()), link_name(), group_.name(), way_out_.name()};
}

void Membership::on(const GroupRunning& running) {
  if (!is_current(running.round) || round_->state != NodeState::kStarting) return;
  round_->state = NodeState::kRunning;
  report();
}

void Membership::on(const GroupSucceeded& succeeded) {
  if (!group_.succeeded(succeeded.round) || !is_current(succeeded.round)) return;
  round_->state = NodeState::kSucceeded;
  report();
}

void Membership::on(const GroupFailed& failed) {
  if (!group_.failed(failed.round)) return;
  if (!is_current(failed.round)) return;
  round_->state = NodeState::kFailed;
  round_->failure = failed.first;
  round_->failed_at = now_;
  report();
}

void Membership::on(const GroupGone& gone) {
  const bool straggled = group_.is_straggling();
  if (!group_.gone(gone.round)) return;
  if (way_out_.is_decided()) return end_if_nothing_left();
  if (way_out_.is_leaving()) await_answer_to_leave();
  const bool next_waits = !way_out_.is_leaving() && round_->state == NodeState::kStarting &&
                          round_->number() > gone.round;
  if (next_waits) {
    send(Stopped{gone.round, gone.took, gone.killed, gone.stopped});
    return start_group();
  }
  if (straggled) return;  // nothing was stopped: no answer is due
  if (round_->state == NodeState::kStopping) round_->state = NodeState::kStopped;
  answer_stop({round(), gone.took, gone.killed, gone.stopped, gone.ranks, gone.waits,
               gone.other_failure, gone.alike, gone.spared});
}

void Membership::on(const FinishedBefore& finished) {
  if (!is_current(finished.round)) return;
  round_->finished = finished.finished;
  report();
}

void Membership::on(const GroupQuiet& quiet) {
  const bool runs = is_current(quiet.round) && round_->state == NodeState::kRunning;
  if (runs && answered()) send(Quiet{quiet.round, quiet.lasts, quiet.echo});
}

void Membership::on(const StoreIdle& idle) {
  stores_.close(idle.round, actions_);
  end_if_nothing_left();
}

void Membership::on(const LeaveAsked& leave) {
  way_out_.ask();
  if (way_out_.is_decided()) return end_if_nothing_left();
  if (way_out_.is_leaving()) {
    if (group_.is_none()) await_answer_to_leave();
    return;
  }
  way_out_.leave(End{leave.exit_code, leave.reason});
  if (group_.is_none()) await_answer_to_leave();
  notices_.end_wait();
  if (greeting() != nullptr) {
    send(Leave{leave.exit_code, leave.reason, group_.round(), leave.requested, leave.all_nodes});
  }
  stop_group(own_stop());
  if (!answered()) stop_leaving();
}

// No worker is left here: the coordinator may still wait for those of other nodes, for as long as
// this node would let them wait.
void Membership::await_answer_to_leave() {
  const Milliseconds others = std::min(options_.hello.stop_timeout, kStopWaitMax);
  const Duration stop = options_.failure_grace + others + kStopMargin;
  way_out_.wait_until(now_ + (way_out_.hurries() ? kHurryMax : stop + kLeaveMargin));
}

// All ranks of this node have exited with 0. Who asks twice gets the code that was asked for.
bool Membership::ends_with_success() const {
  return state() == NodeState::kSucceeded && !way_out_.hurries();
}

// The coordinator is not waited for.
void Membership::stop_leaving() {
  if (!ends_with_success()) return end(known_end(way_out_.end()));
  end(succeeded_here(way_out_.end().text + ", and the coordinator " + options_.coordinator +
                     " did not answer"));
}

// A verdict that the coordinator announced stands, even if its whole report never comes.
End Membership::known_end(End otherwise) const {
  if (!round_ || !round_->verdict) return otherwise;
  return End{round_->verdict->exit_code, round_->verdict->text, round_->verdict};
}

// The one message that starts workers. A round that is not newer than the known one is never
// started. A node that leaves answers it by what it does anyway: its workers end.
void Membership::take(const StartRound& start) {
  if (way_out_.is_decided()) return;
  if (round_ && start.stamp.number <= round_->number()) return take_again(start);
  if (disbelieve(what_cannot_be(start, options_.hello))) return;
  round_ = NodeRound{start};
  seen_ = std::max(seen_, round_->number());
  if (way_out_.is_leaving()) {
    round_->state = NodeState::kStopping;
    return;
  }
  search_.learn(start.successors, start.group_rank);
  notices_.end_waiting();
  notices_.note(start.reason, actions_);
  stores_.release(now_, actions_);
  if (start.group_rank == 0) {
    stores_.serve(start, actions_);
  } else {
    report();
  }
  if (group_.is_none()) return start_group();
  StopGroup order = own_stop();
  order.then = StopGroup::Then::kNextRound;
  stop_group(order);
}

/// Whether something was said that cannot be: then it was no coordinator of this run.
bool Membership::disbelieve(const std::string& what) {
  if (what.empty()) return false;
  end(End{kExitRefused, "the coordinator " + options_.coordinator +
                            " announced what cannot be: " + what +
                            "; check that --rdzv-endpoint names the coordinator of this run"});
  return true;
}

void Membership::take_again(const StartRound& start) {
  if (start.stamp == round_->start.stamp) return report();
  ++stale_;
}

void Membership::take(const Stop& stop) {
  if (way_out_.is_decided()) return;
  if (!is_current(stop.round)) {
    ++stale_;
    return;
  }
  round_->verdict = stop.verdict;
  if (stop.restarts) round_->restarts = RestartCount(*stop.restarts);
  stores_.release(now_, actions_);
  if (group_.can_be_stopped()) notices_.note(stop.reason, actions_);
  const bool gone = group_.is_none();
  if (round_->state != NodeState::kSucceeded) {
    round_->state = gone ? NodeState::kStopped : NodeState::kStopping;
  }
  if (gone)
    return answer_stop(round_->stopped.value_or(Stopped{stop.round, Milliseconds(0), 0, 0}));
  const std::optional<Done>& known = stop.verdict;
  const bool witness = known && known->failure && known->failure->first.complaint;
  using Then = StopGroup::Then;
  const Then then = stop.waits && way_out_.is_staying() ? Then::kWait : Then::kEnd;
  StopGroup order = own_stop();  // a coordinator that says another grace is not obeyed
  order.look = witness;
  order.then = then;
  order.requested = stop.requested;
  order.after_failure = known && known->failure && !stop.requested && then == Then::kEnd;
  stop_group(order);
}

void Membership::take(const Done& done) {
  if (way_out_.is_decided() || disbelieve(what_cannot_be(done, was_greeted_))) return;
  end(End{done.exit_code, done.text, done});
}

void Membership::take(const LetGo& let_go) {
  const bool alone = options_.hello.terms.nodes_max == 1;
  if (way_out_.is_leaving() && !alone) rest_ = let_go.text;
}

void Membership::take(const Refused& refused) {
  if (way_out_.is_decided()) return;
  if (ends_with_success()) return end(succeeded_here(refused.sentence));
  if (way_out_.is_leaving()) return stop_leaving();
  const bool again = refused.retry_after.count() > 0 && !node_rank_retried_;
  if (!again && can_do_without_rank(refused)) return join_without_rank(refused);
  if (!again) return end(End{kExitRefused, refused.sentence});
  node_rank_retried_ = true;
  const auto pause = std::chrono::ceil<std::chrono::seconds>(refused.retry_after);
  notices_.note(refused.sentence + "; retrying in " + duration_text(pause), actions_);
  drop_link(LinkEnd::kOpen);
  link_ = link::Down{now_ + refused.retry_after};
}

/// torchrun ignores --node-rank with c10d, so that command lines have any.
bool Membership::can_do_without_rank(const Refused& refused) const {
  const bool by_rank =
      refused.code == RefusalCode::kNodeRankTaken || refused.code == RefusalCode::kNodeRankTooHigh;
  return by_rank && options_.hello.node_rank && !options_.rank_decides;
}

void Membership::join_without_rank(const Refused& refused) {
  options_.hello.node_rank.reset();
  notices_.note(refused.sentence + "; this node joins without", actions_);
  drop_link(LinkEnd::kOpen);
  link_ = link::Down{now_};
}

void Membership::take(const Waiting& waiting) {
  seen_ = std::max(seen_, waiting.round);
  if (!waiting.successors.empty()) search_.learn(waiting.successors, -1);
  if (waiting.text.empty() || !way_out_.is_staying()) return;
  Wait wait{waiting.text, "gives up", "join_timeout"};
  if (waiting.then == WaitEnd::kRoundStarts) {
    wait.end = "the round starts";
    wait.option = "last_call_timeout";
  } else if (waiting.then == WaitEnd::kOthersAreLost) {
    wait.end = "continues without the others";
    wait.option = "keep_alive_max_attempt";
  }
  if (waiting.left.count() > 0) wait.until = now_ + waiting.left;
  notices_.wait_for(std::move(wait), now_, actions_);
}

// What comes here after it came over another node was delivered already.
void Membership::on(const SignalCame& came) {
  DeliverSignal deliver{came.signal, came.from};
  deliver.force = came.force;
  if (came.whom == SignalCame::For::kAllNodes) {
    if (!signals_.is_new(came.signal, SignalOrigin::kHere, now_)) return;
    if (round_) deliver.other_nodes = round_->start.group_size - 1;
  }
  if (deliver.other_nodes > 0) {
    deliver.others =
        answered() ? DeliverSignal::Others::kTold : DeliverSignal::Others::kUnreachable;
    if (answered()) send(PassSignal{round(), came.signal, came.from, "", came.force});
  }
  actions_.emplace_back(std::move(deliver));
}

void Membership::take(const PassSignal& passed) {
  const bool here = is_current(passed.round) && group_.is_alive() && group_.round() == passed.round;
  if (!here || !may_be_passed_on(passed.signal)) {
    ++stale_;
    return;
  }
  if (!signals_.is_new(passed.signal, SignalOrigin::kElsewhere, now_)) return;
  DeliverSignal deliver{passed.signal, passed.from, passed.host};
  deliver.force = passed.force;
  actions_.emplace_back(std::move(deliver));
}

void Membership::take(const Hang& hang) {
  const bool runs = is_current(hang.round) && round_->state == NodeState::kRunning;
  if (!runs || !group_.is_alive()) {
    ++stale_;
    return;
  }
  actions_.emplace_back(CheckHang{hang.echo});
}

// While the next listener opens, the report is held back: it follows with the port.
void Membership::report() {
  if (!round_ || stores_.port() == 0) return;
  if (round_->finished > Round(0)) {
    send(Report{round_->finished, NodeState::kSucceeded, stores_.port(), std::nullopt});
  }
  send(round_->report(stores_.port()));
}

void Membership::answer_stop(Stopped stopped) {
  round_->stopped = stopped;
  send(stopped);
}

StopGroup Membership::own_stop() const {
  return {group_.round(), 15, options_.hello.stop_timeout};
}

// Of one that ends already, workers may be held, or have the failure grace.
void Membership::stop_group(StopGroup order) {
  if (group_.can_be_stopped()) {
    group_.stop();
  } else if (group_.is_none() || (order.after_failure && !options_.keeps_survivors)) {
    return;
  }
  actions_.emplace_back(order);
}

void Membership::start_group() {
  group_.start(round_->number());
  actions_.emplace_back(StartGroup{round_->start});
}

void Membership::end(End verdict) {
  if (!verdict.done) verdict.rest = rest_;
  way_out_.decide(std::move(verdict));
  notices_.end_waiting();
  if (greeting() == nullptr) close_link();  // a hello would make it a member again
  const End& decided = way_out_.end();
  // After a success stragglers have their own time to end.
  const bool waits = group_.is_straggling() && decided.exit_code == 0;
  StopGroup order = own_stop();
  order.after_failure = decided.done && decided.done->failure;
  if (!waits) stop_group(order);
  end_if_nothing_left();
}

void Membership::end_if_nothing_left() {
  if (!way_out_.is_decided() || !group_.is_none()) return;
  stores_.release(now_, actions_);
  const End& decided = way_out_.end();
  const bool succeeded = decided.done && decided.exit_code == 0 && state() == NodeState::kSucceeded;
  const bool single_node = options_.hello.terms.nodes_max == 1;  // no rank uses a store any more
  if (way_out_.hurries() || single_node) {
    stores_.close_released(actions_);
  } else if (succeeded || (round_ && round_->start.group_size == 1)) {
    stores_.close(round(), actions_);  // no other node has ranks of it
  }
  // After a failure, or of an earlier round, ranks of other nodes may still save what they have.
  if (!stores_.released().empty()) return wait_for_other_ranks();
  close_link();
  actions_.emplace_back(way_out_.finish());
}

void Membership::wait_for_other_ranks() {
  const Stores::Released& last = stores_.released().back();
  const std::string text = "ranks of other nodes still use the store of round " +
                           std::to_string(last.round.value()) + " on this node";
  notices_.wait_for(Wait{text, "closes it", "", last.close_at}, now_, actions_);
}

}  // namespace ddprun::client

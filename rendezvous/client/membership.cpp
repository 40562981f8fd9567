#include "rendezvous/client/membership.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/duration_text.hpp"
#include "base/limits.hpp"

namespace ddprun::client {

using namespace protocol;

Membership::Membership(MembershipOptions options, TimePoint start)
    : options_(std::move(options)), start_(start), now_(start), lost_at_(start) {}

Actions Membership::begin(TimePoint now) {
  now_ = std::max(now_, now);
  actions_.emplace_back(OpenStore{});
  wait_for_coordinator("");
  arm();
  return std::exchange(actions_, {});
}

Actions Membership::step(const Event& event, TimePoint now) {
  if (ended_) return {};
  now_ = std::max(now_, now);
  actions_.clear();
  std::visit([this](const auto& one) { on(one); }, event);
  if (!ended_) arm();
  return std::exchange(actions_, {});
}

bool Membership::is_current(Round round) const {
  return round_ && round == round_->stamp.number;
}

void Membership::on(const GroupRunning& running) {
  if (!is_current(running.round) || state_ != NodeState::kStarting) return;
  state_ = NodeState::kRunning;
  report();
}

void Membership::on(const GroupSucceeded& succeeded) {
  // After a stop was ordered it is GroupGone that counts.
  if (succeeded.round != group_round_ || group_ != Group::kAlive) return;
  group_ = Group::kStraggling;
  state_ = NodeState::kSucceeded;
  report();
}

void Membership::on(const GroupFailed& failed) {
  // Also when it is told only after a stop was ordered: it may be the first failure of the run.
  if (group_ == Group::kNone || failed.round != group_round_) return;
  group_ = Group::kEnding;
  if (!is_current(failed.round)) return;
  state_ = NodeState::kFailed;
  failure_ = failed.first;
  report();
}

void Membership::on(const GroupGone& gone) {
  if (group_ == Group::kNone || gone.round != group_round_) return;
  const bool straggled = std::exchange(group_, Group::kNone) == Group::kStraggling;
  if (verdict_) return end_if_nothing_left();
  if (hurries_) leave_until_ = now_ + kHurryMax;
  const bool next_waits =
      !leaving_ && round_ && state_ == NodeState::kStarting && round_->stamp.number > gone.round;
  if (next_waits) return start_group();
  if (straggled) return;  // and nothing was stopped: no answer is due
  if (state_ == NodeState::kStopping) state_ = NodeState::kStopped;
  stopped_ = Stopped{round(), gone.took, gone.killed, gone.stopped};
  send(*stopped_);
}

void Membership::on(const StoreIdle& idle) {
  close_stores([&idle](const ReleasedStore& store) { return store.round == idle.round; });
  end_if_nothing_left();
}

void Membership::on(const LeaveAsked& leave) {
  if (std::exchange(leave_asked_, true)) hurries_ = true;
  if (verdict_) return end_if_nothing_left();
  if (leaving_) {
    if (group_ == Group::kNone) leave_until_ = now_ + kHurryMax;
    return;
  }
  leaving_ = End{leave.exit_code, leave.reason, std::nullopt};
  wait_.reset();
  if (greeting() != nullptr) send(Leave{leave.exit_code, leave.reason, group_round_});
  if (!answered()) return stop_leaving();
  stop_group(15, options_.hello.stop_timeout);
}

// The coordinator lets this node go, or is not waited for.
void Membership::stop_leaving() {
  end(known_end(*std::exchange(leaving_, std::nullopt)));
}

// A verdict that the coordinator told before stands, even if its report never comes.
End Membership::known_end(End otherwise) const {
  if (told_verdict_) return End{told_verdict_->exit_code, told_verdict_->text, std::nullopt};
  return otherwise;
}

// The one message that starts workers. A round that is not newer than the one known is never taken
// on.
void Membership::take(const StartRound& start) {
  if (verdict_) return;
  if (round_ && start.stamp.number <= round_->stamp.number) {
    const bool again = start.stamp == round_->stamp;
    if (!again) ++stale_;
    if (again && store_port_ != 0) report();
    return;
  }
  told_verdict_.reset();
  if (leaving_) return take_while_leaving(start);
  round_ = start;
  waits_since_.reset();
  wait_.reset();
  seen_ = std::max(seen_, start.stamp.number);
  state_ = NodeState::kStarting;
  failure_.reset();
  stopped_.reset();
  note(start.reason);
  release_store();
  if (start.group_rank == 0) {
    serving_ = start.stamp.number;
    store_port_ = 0;
    actions_.emplace_back(ServeStore{start.stamp.number});
    actions_.emplace_back(OpenStore{});
  } else {
    report();
  }
  if (group_ == Group::kNone) return start_group();
  stop_group(15, options_.hello.stop_timeout);
}

// It is answered by what this node does anyway: its workers end.
void Membership::take_while_leaving(const StartRound& start) {
  round_ = start;
  seen_ = std::max(seen_, start.stamp.number);
  state_ = NodeState::kStopping;
  failure_.reset();
  stopped_.reset();
}

void Membership::take(const Stop& stop) {
  if (verdict_) return;
  if (!is_current(stop.round)) {
    ++stale_;
    return;
  }
  told_verdict_ = stop.verdict;
  release_store();
  if (can_stop_group()) note(stop.reason);
  if (group_ == Group::kNone) {
    if (state_ != NodeState::kSucceeded) state_ = NodeState::kStopped;
    if (!stopped_) stopped_ = Stopped{stop.round, Milliseconds(0), 0, 0};
    return send(*stopped_);
  }
  if (state_ != NodeState::kSucceeded) state_ = NodeState::kStopping;
  stop_group(stop.signal, stop.grace);
}

void Membership::take(const Done& done) {
  if (verdict_) return;
  end(End{done.exit_code, done.text, done});
}

void Membership::take(const Refused& refused) {
  if (verdict_) return;
  if (leaving_) return stop_leaving();
  if (state_ == NodeState::kSucceeded) return end(succeeded_here(refused.sentence));
  const bool again = refused.retry_after.count() > 0 && !node_rank_retried_;
  if (!again) return end(End{1, refused.sentence, std::nullopt});
  node_rank_retried_ = true;
  const auto pause = std::chrono::ceil<std::chrono::seconds>(refused.retry_after);
  note(refused.sentence + "; asks again in " + duration_text(pause));
  drop_link(LinkEnd::kOpen);
  link_ = link::Down{now_ + refused.retry_after};
}

void Membership::take(const Waiting& waiting) {
  seen_ = std::max(seen_, waiting.round);
  if (waiting.text.empty() || leaving_) return;
  Wait wait{waiting.text, "gives up", "join_timeout", std::nullopt};
  if (waiting.then == protocol::WaitEnd::kRoundStarts) {
    wait.end = "the round starts";
    wait.option = "last_call_timeout";
  } else if (waiting.then == protocol::WaitEnd::kOthersAreLost) {
    wait.end = "goes on without the others";
    wait.option = "keep_alive_max_attempt";
  }
  if (waiting.left.count() > 0) wait.until = now_ + waiting.left;
  wait_for(std::move(wait));
}

void Membership::report() {
  Report report;
  report.round = round();
  report.state = state_;
  report.store_port = store_port_;
  if (state_ == NodeState::kFailed) report.failure = failure_;
  // While the next listener opens, the report is held back: it follows with the port.
  if (store_port_ != 0) send(std::move(report));
}

void Membership::stop_group(int signal, Milliseconds grace) {
  if (!can_stop_group()) return;
  group_ = Group::kEnding;
  actions_.emplace_back(StopGroup{group_round_, signal, grace});
}

void Membership::start_group() {
  DDPRUN_ASSERT(group_ == Group::kNone);
  group_ = Group::kAlive;
  group_round_ = round_->stamp.number;
  actions_.emplace_back(StartGroup{*round_});
}

void Membership::end(End verdict) {
  verdict_ = std::move(verdict);
  if (is_down()) link_ = link::Down{};
  // After a success stragglers have their own time to end.
  const bool waits = group_ == Group::kStraggling && verdict_->exit_code == 0;
  if (!waits) stop_group(15, options_.hello.stop_timeout);
  end_if_nothing_left();
}

void Membership::end_if_nothing_left() {
  if (!verdict_ || group_ != Group::kNone) return;
  release_store();
  // After a failure ranks of a node that leaves may still save what they have.
  const bool succeeded = verdict_->done && verdict_->exit_code == 0;
  const bool all = succeeded || hurries_;
  // A round of this node alone has no other ranks; an earlier one may still have some.
  const Round alone = round_ && round_->group_size == 1 ? round() : Round(0);
  close_stores([&](const ReleasedStore& store) { return all || store.round == alone; });
  if (!released_.empty()) return wait_for_other_ranks();
  if (!is_down()) actions_.emplace_back(CloseLink{link_id_});
  link_ = link::Down{};
  ended_ = true;
  actions_.emplace_back(*verdict_);
}

void Membership::release_store() {
  if (!serving_) return;
  const Duration longest = options_.hello.stop_timeout + kStopMargin;
  released_.push_back({*serving_, now_ + longest});
  actions_.emplace_back(ReleaseStore{*std::exchange(serving_, std::nullopt)});
}

void Membership::close_stores(const std::function<bool(const ReleasedStore&)>& which) {
  for (const ReleasedStore& store : released_) {
    if (which(store)) actions_.emplace_back(CloseStore{store.round});
  }
  std::erase_if(released_, which);
}

void Membership::close_overdue_stores() {
  close_stores([this](const ReleasedStore& store) { return now_ >= store.close_at; });
  end_if_nothing_left();
}

void Membership::wait_for_other_ranks() {
  const std::string text = "ranks of other nodes still use the store of round " +
                           std::to_string(released_.back().round.value()) + " on this node";
  wait_for(Wait{text, "closes it", "", released_.back().close_at});
}

void Membership::wait_for(Wait wait) {
  if (!waits_since_) waits_since_ = now_;
  wait_ = std::move(wait);
  note_wait_if_due();
}

// The same wait is told once, however much of its time has passed, and also if the reasons why the
// coordinator is not reached take turns.
void Membership::note_wait_if_due() {
  if (!wait_ || !waits_since_ || now_ - *waits_since_ < kQuietMax) return;
  Wait wait = *std::exchange(wait_, std::nullopt);
  const bool told =
      std::find(told_waits_.begin(), told_waits_.end(), wait.text) != told_waits_.end();
  if (told || wait.text == last_note_) return;
  last_note_ = wait.text;
  told_waits_.push_back(wait.text);
  if (wait.until && *wait.until > now_) {
    const auto left = std::chrono::ceil<std::chrono::seconds>(*wait.until - now_);
    wait.text += "; " + wait.end + " in " + duration_text(left);
    if (!wait.option.empty()) wait.text += " (--rdzv-conf " + wait.option + ")";
  }
  actions_.emplace_back(Note{std::move(wait.text)});
}

void Membership::note(std::string text) {
  if (text.empty() || text == last_note_) return;
  last_note_ = text;
  actions_.emplace_back(Note{std::move(text)});
}

}  // namespace ddprun::client

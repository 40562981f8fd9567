// What agents report, how they go, and how a run ends.
#include <algorithm>
#include <utility>

#include "rendezvous/round/run.hpp"

namespace ddprun::round {

using namespace protocol;

// The fence: only the last round an agent was given counts, and it moves the run only while that
// round lives.
void Run::on_report(Agent& agent, const Report& report) {
  if (report.round != agent.last.number) {
    ++counters_.stale;
    return;
  }
  agent.store_port = report.store_port;
  const bool told_to_stop =
      agent.state == NodeState::kStopping || agent.state == NodeState::kStopped;
  const bool news = report.state != agent.state && !told_to_stop;
  if (news) roster_.set_state(agent, report.state);
  if (report.state == NodeState::kRunning && news) {
    agent.running_at = now_;
    if (is_member(agent)) running_since_ = now_;
  }
  if (report.state == NodeState::kFailed && !report.exits.empty() && !agent.failure) {
    agent.failure = report.exits.front();
    const TimePoint by_agent = agent.running_at + report.exits.front().after;
    if (is_member(agent)) {
      failures_.push_back({std::min(now_, by_agent), agent.host(), agent.hello.agent,
                           report.exits.front(), last_.number});
    }
  }
  if (phase_ == Phase::kRunning && roster_.starting() == 0) answered_failure_.reset();
  if (!is_member(agent)) return;
  if (!std::exchange(agent.answered, true)) --unanswered_;
  if (phase_ != Phase::kRunning || !news) return;
  if (report.state == NodeState::kFailed) return on_failure(agent);
  if (report.state != NodeState::kSucceeded) return;
  ++succeeded_;
  check_success();
  if (phase_ != Phase::kRunning) return;
  Waiting waiting;
  waiting.here = roster_.size();
  waiting.nodes_min = terms().nodes_min;
  waiting.nodes_max = terms().nodes_max;
  waiting.round = Round(highest_);
  waiting.text = reasons::finishing(succeeded_, static_cast<int>(members_.size()));
  send(agent.link, waiting);
}

// One budget for the run: the first failure of a round takes one, what it drags along is of an
// ended round.
void Run::on_failure(Agent& agent) {
  WorkerExit unknown;
  unknown.rank = agent.placement.rank_base;
  unknown.cause = "no evidence";
  answered_failure_ =
      Failure{now_, agent.host(), agent.hello.agent, agent.failure.value_or(unknown), last_.number};
  if (restarts_.value() >= terms().max_restarts) {
    failed_at_ = now_;
    return finish_failed(terms().max_restarts == 0 ? "" : reasons::no_restart_left(terms()));
  }
  restarts_ = RestartCount(restarts_.value() + 1);
  const reasons::Failure failure{answered_failure_->host, answered_failure_->exit};
  restart_delay_ = pace_.failed(now_ - running_since_);
  end_round(reasons::restart(failure, restarts_, terms(), restart_delay_));
  if (restart_delay_.count() > 0) restart_at_ = now_ + restart_delay_;
}

void Run::finish_failed(const std::string& why_no_restart) {
  Done verdict;
  verdict.no_restart = why_no_restart;
  verdict_ = std::move(verdict);
  set_failure(*answered_failure_);
  finish(*verdict_);
}

void Run::set_failure(const Failure& failure) {
  failed_agent_ = failure.agent;
  verdict_->exit_code = failure.exit.exit_code == 0 ? 1 : failure.exit.exit_code;
  const std::string& why = verdict_->no_restart;
  verdict_->text = reasons::failed({failure.host, failure.exit}) + "; " +
                   (why.empty() ? reasons::no_restart_left(terms()) : why);
  verdict_->host = failure.host;
  verdict_->failure = failure.exit;
  verdict_->round = failure.round;
}

void Run::on_stopped(Agent& agent, const Stopped& stopped) {
  if (stopped.round != agent.runs) {
    ++counters_.stale;
    return;
  }
  if (phase_ == Phase::kStopping && is_active(agent.state)) {
    verdict_->stopped += stopped.stopped;
    verdict_->killed += stopped.killed;
    verdict_->stop_took = std::max(verdict_->stop_took, stopped.took);
  }
  if (agent.state != NodeState::kSucceeded) roster_.set_state(agent, NodeState::kStopped);
}

// Whoever leaves on purpose takes the run along if too few remain: the operator stopped it. A
// verdict that is known is everybody's, and no later leave replaces it.
void Run::on_leave(Agent& agent, const Leave& leave) {
  if (phase_ == Phase::kStopping && verdict_->failure) {
    agent.leave = leave;  // conclude() has the report for it
    return;
  }
  if (phase_ == Phase::kStopping) send(agent.link, *verdict_);
  const reasons::NodeLost node = describe(agent, leave.reason);
  const bool restarts = restart_at_.has_value() && agent.last == last_;
  const std::string sentence = reasons::left(node);
  const bool too_few = roster_.size() - 1 < terms().nodes_min;
  const bool ends_run = too_few || agent.hello.runs_coordinator;
  if (ends_run && failure_explains(agent, leave)) {
    agent.leave = leave;
    failed_at_ = TimePoint{};
    return finish_failed(options_.single_node ? leave.reason : sentence);
  }
  const bool lives = phase_ != Phase::kStopping && phase_ != Phase::kOver;
  const bool works =
      phase_ == Phase::kRunning && is_member(agent) && agent.state != NodeState::kSucceeded;
  const bool hosts = agent.hello.runs_coordinator;
  const RoundEnd end = round_end_without(agent);
  let_go(agent);
  if (!(lives && hosts) && !((works || restarts) && too_few)) return after_loss(end, sentence);
  ++counters_.losses;
  const std::string text = hosts ? reasons::left_with_coordinator(sentence)
                                 : reasons::left_too_few(sentence, roster_.size(), terms());
  finish(Done{leave.exit_code, text, node.host, std::nullopt});
}

void Run::let_go(Agent& agent) {
  close(agent.link);
  forget(agent);
}

// Whether workers of the failed round may still be ending, here or elsewhere: then the failure was
// before whatever makes this node leave.
bool Run::failure_explains(const Agent& agent, const Leave& leave) const {
  if (!answered_failure_ || (phase_ != Phase::kRunning && phase_ != Phase::kForming)) return false;
  const int others = roster_.starting() - (agent.state == NodeState::kStarting ? 1 : 0);
  return leave.round == answered_failure_->round || others > 0;
}

void Run::lose(Agent& agent, const std::string& evidence, LinkEnd link_end) {
  const bool overtaken = explains_failure(agent);
  const RoundEnd end = overtaken ? RoundEnd::kEnds : round_end_without(agent);
  const std::string sentence = reasons::lost(describe(agent, evidence));
  if (link_end == LinkEnd::kOpen) close(agent.link);
  forget(agent);
  if (overtaken) {
    verdict_.reset();
    answered_failure_.reset();
    stop_deadline_.reset();
  }
  after_loss(end, sentence);
  if (overtaken) let_leavers_go();
}

// Those that waited for a report which will not come.
void Run::let_leavers_go() {
  std::vector<Agent*> leavers;
  for (Agent* agent : roster_.by_silence()) {
    if (agent->leave) leavers.push_back(agent);
  }
  for (Agent* agent : leavers) {
    const Leave leave = *std::exchange(agent->leave, std::nullopt);
    send_stop(*agent, why_);  // without the verdict that it was told
    on_leave(*agent, leave);
  }
}

// The news of a lost node can come after that of a worker elsewhere that failed because of it. A
// node of which nothing was heard since was gone before; one that beats while its workers end was
// not.
bool Run::explains_failure(const Agent& agent) const {
  return phase_ == Phase::kStopping && verdict_->failure && is_member(agent) &&
         is_active(agent.state) && agent.heard < failed_at_;
}

// A node whose workers have all succeeded is missed only if it holds the store of the round.
Run::RoundEnd Run::round_end_without(const Agent& agent) const {
  if (phase_ != Phase::kRunning || !is_member(agent)) return RoundEnd::kGoesOn;
  const bool done = agent.state == NodeState::kSucceeded && agent.group_rank != 0;
  return done ? RoundEnd::kGoesOn : RoundEnd::kEnds;
}

void Run::after_loss(RoundEnd end, const std::string& sentence) {
  ++counters_.losses;
  if (phase_ == Phase::kOver) return;
  if (end == RoundEnd::kGoesOn) return note(Level::kWarning, sentence);
  end_round(sentence + "; " + reasons::remain(roster_.size(), terms()));
}

void Run::forget(Agent& agent) {
  if (is_member(agent)) {
    members_[static_cast<std::size_t>(agent.group_rank)] = nullptr;
    --members_here_;
    if (!agent.answered) --unanswered_;
  }
  for (Agent*& claim : claims_) {
    if (claim != &agent) continue;
    claim = nullptr;
    ++claims_missing_;
  }
  awaited_ = nullptr;
  roster_.remove(agent);
}

void Run::check_success() {
  const int nodes = static_cast<int>(members_.size());
  if (phase_ != Phase::kRunning || succeeded_ < nodes) return;
  finish(Done{0, reasons::success(world_size_, nodes, restarts_), "", std::nullopt});
}

// The verdict is known; it is told when nothing runs any more, so that nobody exits over live
// workers.
void Run::finish(Done verdict) {
  phase_ = Phase::kStopping;
  why_ = verdict.text;
  verdict_ = std::move(verdict);
  for (auto* one : {&join_deadline_, &last_call_, &restart_at_, &rebuild_deadline_,
                    &answer_deadline_, &linger_deadline_, &announce_at_}) {
    one->reset();
  }
  Milliseconds longest{0};
  for (Agent* agent : roster_.by_silence()) {
    if (!is_active(agent->state)) continue;
    longest = std::max(longest, agent->hello.stop_timeout);
    send_stop(*agent, why_);
  }
  stop_deadline_ = now_ + longest + kStopMargin;
}

void Run::conclude() {
  choose_first_failure();
  verdict_->reporter = reporter();
  phase_ = Phase::kOver;
  over_at_ = now_;
  stop_deadline_.reset();
  linger_deadline_ = now_ + kLingerMax;
  why_ = verdict_->text;
  note(Level::kInfo, why_);  // the agents print it
  for (const Agent* agent : roster_.by_silence()) send(agent->link, *verdict_);
}

// Reports may overtake each other; the earliest on the coordinator's clock is the first failure of
// the run.
void Run::choose_first_failure() {
  if (!verdict_->failure) return;
  std::erase_if(failures_, [this](const Failure& one) { return one.round != verdict_->round; });
  if (failures_.empty()) return;
  const auto first = std::min_element(
      failures_.begin(), failures_.end(),
      [](const Failure& left, const Failure& right) { return left.at < right.at; });
  set_failure(*first);
}

// One console has the whole report: that of the coordinator, else where the failure was.
std::string Run::reporter() const {
  if (!verdict_->failure) return "";
  for (const Agent* agent : roster_.by_silence()) {
    if (agent->hello.runs_coordinator) return agent->hello.agent.value();
  }
  return failed_agent_.value();
}

reasons::NodeLost Run::describe(const Agent& agent, const std::string& evidence) const {
  reasons::NodeLost node{agent.host(), "", evidence};
  if (is_member(agent)) {
    node.ranks = reasons::ranks_text(agent.placement.rank_base, agent.hello.local_world_size);
  }
  return node;
}

reasons::Absence Run::absence() const {
  reasons::Absence absence;
  if (formed_) absence.why = why_;
  if (may_be_late()) absence.why = reasons::anew(options_.run_id, now_ - options_.succeeded->at);
  bool all_numbered = true;
  for (const Agent* agent : roster_.by_silence()) {
    absence.hosts.push_back(agent->host());
    all_numbered = all_numbered && agent->hello.node_rank.has_value();
  }
  const int wanted = terms().nodes_max;
  for (int rank = 0; all_numbered && !absence.hosts.empty() && rank < wanted; ++rank) {
    if (roster_.by_node_rank(rank) == nullptr) absence.missing.push_back(rank);
  }
  return absence;
}

void Run::send_stop(Agent& agent, const std::string& reason) {
  roster_.set_state(agent, NodeState::kStopping);
  Stop stop{agent.runs, 15, agent.hello.stop_timeout, reason, std::nullopt};
  if (verdict_ && verdict_->failure) stop.verdict = verdict_;
  send(agent.link, std::move(stop));
}

}  // namespace ddprun::round

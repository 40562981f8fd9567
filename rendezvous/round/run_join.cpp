// How agents come to a run: admitted, refused, back after a lost link, or back to a coordinator
// that started empty and rebuilds the round from what they say.
#include <algorithm>
#include <utility>

#include "rendezvous/protocol/limits.hpp"
#include "rendezvous/round/run.hpp"

namespace ddprun::round {

using namespace protocol;

void Run::on_hello(const Received& received, const Hello& hello) {
  if (phase_ == Phase::kOver) return late_hello(received.link, hello);
  Agent* speaker = roster_.by_link(received.link);
  const bool other_agent = speaker != nullptr && speaker->hello.agent != hello.agent;
  const std::optional<Refused> refused =
      other_agent ? Refused{RefusalCode::kMalformed, "one link, two agents", Milliseconds(0)}
                  : refusal_of(hello);
  if (refused) {
    ++counters_.refusals;
    note(Level::kWarning, "refused " + hello.host + ": " + refused->sentence);
    send(received.link, *refused);
    close(received.link);
    if (speaker != nullptr) lose(*speaker, refused->sentence, LinkEnd::kGone);
    return;
  }
  const bool fresh = is_first_of_new_run(hello);
  if (fresh) {
    // Nobody is left who remembers: this is a new run. Round numbers go on, zombies stay fenced
    // out.
    restarts_ = RestartCount(0);
    pace_ = RestartPace();
    formed_ = false;
    why_.clear();
    survivors_told_ = true;
    answered_failure_.reset();
    join_deadline_.reset();
  }
  if (fresh || !run_terms_) {
    run_terms_ = RunTerms{hello.run_id, hello.terms, hello.fingerprint, hello.command, hello.host};
  }
  Agent* known = roster_.by_id(hello.agent);
  if (known != nullptr) return resume(*known, received, hello);
  admit(received, hello);
}

// Nobody is connected, and this agent has never heard of a round: it cannot mean the run that was
// here.
bool Run::is_first_of_new_run(const Hello& hello) const {
  const bool knows = hello.claim || hello.seen.value() > 0;
  return roster_.empty() && !knows && phase_ == Phase::kForming;
}

std::optional<Refused> Run::refusal_of(const Hello& hello) const {
  if (auto refused = refuse_hello(hello)) return refused;
  if (auto refused = refuse_run(hello, options_.run_id)) return refused;
  const bool fresh = is_first_of_new_run(hello);
  const RunTerms own{hello.run_id, hello.terms, hello.fingerprint, hello.command, hello.host};
  const RunTerms& run_terms = fresh || !run_terms_ ? own : *run_terms_;
  if (auto refused = refuse_terms(hello, run_terms)) return refused;
  if (roster_.by_id(hello.agent) != nullptr) return std::nullopt;
  if (hello.node_rank) {
    const Agent* holder = roster_.by_node_rank(*hello.node_rank);
    if (holder != nullptr) {
      return refuse_node_rank(hello, holder->host(), run_terms.terms.silence_max());
    }
  }
  if (roster_.size() >= kAgentsPerRunMax) {
    return Refused{RefusalCode::kRunFull,
                   "run " + options_.run_id.value() + " has " + std::to_string(kAgentsPerRunMax) +
                       " agents, the most it can have",
                   Milliseconds(0)};
  }
  return std::nullopt;
}

// A member that missed the verdict gets it; so does a late agent when there is nothing left to do
// for it.
void Run::late_hello(LinkId link, const Hello& hello) {
  const std::string text = reasons::over(options_.run_id, now_ - over_at_, *verdict_);
  const std::optional<Refused> other =
      run_terms_ && !hello.claim ? refuse_command(hello, *run_terms_) : std::nullopt;
  if (other) {
    ++counters_.refusals;
    send(link, *other);
  } else if (hello.claim) {
    send(link, *verdict_);
  } else if (verdict_->exit_code == 0) {
    send(link, Done{0, text, "", std::nullopt});
  } else {
    ++counters_.refusals;
    send(link, Refused{RefusalCode::kRunOver, text, Milliseconds(0)});
  }
  close(link);
}

void Run::admit(const Received& received, const Hello& hello) {
  const bool alone = roster_.empty();
  Agent& agent = roster_.add(hello, received.link, received.peer, now_);
  agent.hello.claim.reset();
  agent.hello.command.clear();  // the run_terms has the run's
  ++counters_.joins;
  if (alone) linger_deadline_.reset();
  awaited_ = nullptr;
  const Round claimed = hello.claim ? hello.claim->stamp.number : Round(0);
  const bool unheard_of = std::max(hello.seen, claimed).value() > highest_;
  const bool all_back = alone && formed_ && std::max(hello.seen, claimed) == last_.number;
  if (phase_ == Phase::kForming && (all_back || unheard_of)) {
    begin_rebuilding(std::max(hello.seen, claimed));
  }
  highest_ = std::max(highest_, hello.seen.value());
  if (hello.claim) take_claim(agent, *hello.claim);
  const bool completes =
      phase_ == Phase::kForming && formed_ && roster_.size() == terms().nodes_min;
  if (completes) why_ += "; " + reasons::joined({agent.host()});
  const bool waits = phase_ == Phase::kForming || phase_ == Phase::kRebuilding;
  if (waits && !announce_at_) announce_at_ = std::max(now_, announced_at_) + kAnnounceInterval;
  greet(agent);
}

// Somebody knows of a round that this coordinator does not: its members are given time to come
// back.
void Run::begin_rebuilding(Round heard_of) {
  why_ = reasons::awaiting_return(heard_of);
  phase_ = Phase::kRebuilding;
  rebuild_deadline_ = now_ + terms().silence_max();
  claimed_ = RoundStamp{};
  claims_.clear();
  claims_missing_ = 0;
  for (auto* one : {&join_deadline_, &last_call_, &restart_at_, &answer_deadline_}) one->reset();
}

void Run::greet(const Agent& agent) {
  Waiting waiting;
  waiting.here = roster_.size();
  waiting.nodes_min = terms().nodes_min;
  waiting.nodes_max = terms().nodes_max;
  waiting.round = Round(highest_);
  if (phase_ == Phase::kForming) {
    const bool completes = roster_.size() >= terms().nodes_max || formed_;
    if (completes && roster_.size() >= terms().nodes_min) return;  // the round follows at once
    waiting.text = reasons::waiting_count(roster_.size(), terms());
    const TimePoint until = join_deadline_.value_or(now_ + join_wait());
    waiting.left = std::chrono::duration_cast<Milliseconds>(until - now_);
  } else if (phase_ == Phase::kRebuilding) {
    if (claims_missing_ == 0 && !claims_.empty()) return;  // the round goes on
    waiting.text = why_;
  } else if (phase_ == Phase::kRunning) {
    const int nodes = static_cast<int>(members_.size());
    if (nodes < terms().nodes_max && succeeded_ == 0) return;  // a round with it follows
    waiting.text = nodes >= terms().nodes_max
                       ? reasons::spare(options_.run_id, terms())
                       : reasons::newcomer_while_finishing(succeeded_, nodes);
  } else {
    return;
  }
  send(agent.link, waiting);
}

// The old link may still look alive here: the agent noticed first, or the two raced.
void Run::resume(Agent& agent, const Received& received, const Hello& hello) {
  // What it said on an earlier link can be read later, if both waited to be accepted.
  if (hello.age < agent.hello.age) return close(received.link);
  agent.hello.age = hello.age;
  if (agent.link != received.link) {
    close(agent.link);
    roster_.relink(agent, received.link, received.peer);
  }
  roster_.heard(agent, now_);
  agent.store_port = hello.store_port;
  if (hello.claim) highest_ = std::max(highest_, hello.claim->stamp.number.value());
  if (is_member(agent)) return resume_member(agent, hello);
  if (hello.claim) take_claim(agent, *hello.claim);
  greet(agent);
}

void Run::resume_member(Agent& agent, const Hello& hello) {
  const bool knows = hello.claim && hello.claim->stamp == last_;
  if (knows) {
    // What it did meanwhile it reports again by itself.
    if (!std::exchange(agent.answered, true)) --unanswered_;
    if (phase_ != Phase::kStopping) return;
  }
  if (phase_ == Phase::kStopping) {
    take_claim(agent, hello.claim.value_or(Claim{}));
    if (is_active(agent.state)) send_stop(agent, why_);
    return;
  }
  const bool ahead = hello.claim && hello.claim->stamp.number.value() >= last_.number.value();
  if (ahead) {
    end_round(reasons::lost(describe(agent, "came back from another coordinator's round")));
    return take_claim(agent, *hello.claim);
  }
  send(agent.link, start_message(agent));
}

void Run::take_claim(Agent& agent, const Claim& claim) {
  highest_ = std::max(highest_, claim.stamp.number.value());
  const int budget = terms().max_restarts;
  restarts_ = std::max(restarts_, RestartCount(std::min(claim.restarts.value(), budget)));
  agent.runs = claim.stamp.number;
  roster_.set_state(agent, claim.state);
  // A round it was given and has not heard of still decides its place in the next one.
  if (claim.stamp.number >= agent.last.number && !(claim.stamp == agent.last)) {
    agent.last = claim.stamp;
    agent.group_rank = claim.group_rank;
    agent.failure.reset();
  }
  if (phase_ == Phase::kRebuilding) claim_place(agent, claim);
  if (is_active(claim.state)) strays_.push_back(agent.hello.agent);
}

void Run::claim_place(Agent& agent, const Claim& claim) {
  if (claim.stamp.number > claimed_.number) {
    claimed_ = claim.stamp;
    claims_.assign(static_cast<std::size_t>(claim.group_size), nullptr);
    claims_missing_ = claim.group_size;
  }
  const auto place = static_cast<std::size_t>(claim.group_rank);
  const bool fits = claim.stamp == claimed_ && place < claims_.size() &&
                    claims_.size() == static_cast<std::size_t>(claim.group_size);
  if (!fits || claims_[place] != nullptr) return;
  claims_[place] = &agent;
  --claims_missing_;
  why_ = reasons::rebuilding(claimed_.number, static_cast<int>(claims_.size()) - claims_missing_,
                             static_cast<int>(claims_.size()));
}

void Run::settle_rebuilding() {
  if (claims_missing_ == 0 && !claims_.empty()) return adopt_claimed_round();
  if (!roster_.empty() && !is_due(rebuild_deadline_)) return;
  rebuild_deadline_.reset();
  if (claims_.empty()) {
    formed_ = true;
    return end_round(reasons::nobody_back(Round(highest_), terms().silence_max()));
  }
  last_ = claimed_;
  formed_ = true;
  others_unknown_ = true;
  end_round(reasons::not_rebuilt(claimed_.number, claims_missing_, terms().silence_max()));
}

void Run::adopt_claimed_round() {
  rebuild_deadline_.reset();
  phase_ = Phase::kRunning;
  formed_ = true;
  last_ = claimed_;
  running_since_ = now_;
  members_ = std::exchange(claims_, {});
  members_here_ = static_cast<int>(members_.size());
  unanswered_ = 0;
  succeeded_ = 0;
  failures_.clear();
  why_ = reasons::rebuilt(last_.number, members_here_);
  note(Level::kInfo, why_);
  std::vector<Slot> slots;
  for (const Agent* agent : members_) {
    slots.push_back({agent->hello.local_world_size, agent->hello.role});
  }
  const std::vector<Placement> placements = assign_ranks(slots);
  bool was_stopping = false;
  Agent* failed = nullptr;
  for (Agent* agent : members_) {
    agent->placement = placements[static_cast<std::size_t>(agent->group_rank)];
    agent->running_at = now_;
    // Its report, with the evidence, follows the hello and counts as the failure.
    const bool will_report = agent->state == NodeState::kFailed && !agent->failure;
    if (will_report) roster_.set_state(*agent, NodeState::kRunning);
    if (agent->state == NodeState::kSucceeded) ++succeeded_;
    if (agent->failure && failed == nullptr) failed = agent;
    was_stopping = was_stopping || agent->state == NodeState::kStopping ||
                   agent->state == NodeState::kStopped || agent->state == NodeState::kIdle;
  }
  world_size_ = placements.front().world_size.value();
  if (failed != nullptr) return on_failure(*failed);
  if (was_stopping) return end_round(reasons::was_stopping(last_.number));
  check_success();
}

// Runs after everything was settled: whoever still has workers of another round and got no new one.
void Run::stop_strays() {
  for (const AgentId& id : std::exchange(strays_, {})) {
    Agent* agent = roster_.by_id(id);
    if (agent == nullptr || !is_active(agent->state)) continue;
    if (agent->state == NodeState::kStopping) continue;
    if (phase_ == Phase::kRebuilding) {
      strays_.push_back(id);  // it may belong to the round that is being rebuilt
      continue;
    }
    if (phase_ == Phase::kOver || is_member(*agent)) continue;
    send_stop(*agent, reasons::stray(agent->last.number));
  }
}

}  // namespace ddprun::round

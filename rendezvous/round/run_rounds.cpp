// When a round starts, with whom, and what every agent is told.
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "rendezvous/round/run.hpp"

namespace ddprun::round {

using namespace protocol;

namespace {

[[nodiscard]] bool is_loopback(const std::string& address) {
  return address == "::1" || address.rfind("127.", 0) == 0 || address.rfind("::ffff:127.", 0) == 0;
}

}  // namespace

void Run::settle_forming() {
  if (!run_terms_) return;
  if (roster_.empty()) {
    join_deadline_.reset();
    last_call_.reset();
    announce_at_.reset();
    if (!linger_deadline_) linger_deadline_ = now_ + terms().join_timeout;
    if (now_ >= *linger_deadline_) finish(Done{1, reasons::everybody_gone(), "", std::nullopt});
    return;
  }
  if (!join_deadline_) join_deadline_ = now_ + join_wait();
  if (roster_.size() < nodes_needed()) {
    last_call_.reset();
    restart_at_.reset();
    answer_deadline_.reset();
    awaited_ = nullptr;
    stop_survivors();
    if (is_due(join_deadline_)) give_up_forming();
    return;
  }
  if (roster_.away() > 0) return stop_survivors();  // whoever is on the way back is not left out
  if (restart_at_ && now_ < *restart_at_) return stop_survivors();
  if (!last_call_holds()) start_or_await();
}

void Run::give_up_forming() {
  if (everybody_here_succeeded()) {
    return finish(Done{0, reasons::others_unknown(last_.number, roster_.size()), "", std::nullopt});
  }
  if (!may_be_late()) {
    return finish(Done{1, reasons::join_timeout(absence(), terms()), "", std::nullopt});
  }
  const Ended& ended = *options_.succeeded;
  const std::string over = reasons::over(options_.run_id, now_ - ended.at, ended.verdict);
  const std::string text = reasons::late(over, roster_.size(), nodes_needed(), join_wait());
  finish(Done{0, text, "", std::nullopt});
}

// After a restart of this coordinator: whoever did not come back may have had the verdict.
bool Run::everybody_here_succeeded() const {
  const auto& here = roster_.by_silence();
  return others_unknown_ && std::all_of(here.begin(), here.end(), [this](const Agent* agent) {
           return agent->state == NodeState::kSucceeded && agent->last == last_;
         });
}

int Run::nodes_needed() const {
  const int least = terms().nodes_min;
  return may_be_late() ? std::clamp(options_.succeeded->nodes, least, terms().nodes_max) : least;
}

Duration Run::join_wait() const {
  const auto longest = terms().join_timeout;
  return may_be_late() ? std::min(longest, terms().last_call_timeout) : longest;
}

// Only before the first round: later on nobody waits for agents that are connected already.
bool Run::last_call_holds() {
  if (formed_ || roster_.size() >= terms().nodes_max) return false;
  if (!last_call_) last_call_ = std::min(now_ + terms().last_call_timeout, *join_deadline_);
  return now_ < *last_call_;
}

// Newcomers are let in when the round is settled: so any number of them that come together cost one
// round.
void Run::settle_running() {
  if (answer_deadline_ && is_due(answer_deadline_)) return drop_unanswering();
  const bool room = static_cast<int>(members_.size()) < terms().nodes_max;
  if (unplaced() == 0 || !room || succeeded_ > 0 || unanswered_ > 0 || roster_.away() > 0) return;
  std::vector<std::string> newcomers;
  for (const Agent* agent : roster_.by_silence()) {
    if (!is_member(*agent)) newcomers.push_back(agent->host());
  }
  end_round(reasons::joined(newcomers));
}

void Run::drop_unanswering() {
  answer_deadline_.reset();
  std::vector<AgentId> silent;
  for (const Agent* agent : members_) {
    if (agent != nullptr && !agent->answered) silent.push_back(agent->hello.agent);
  }
  const std::string evidence = reasons::not_answering(last_.number, kAnswerMax);
  for (const AgentId& id : silent) {
    Agent* agent = roster_.by_id(id);
    if (agent == nullptr) continue;
    send(agent->link,
         Refused{RefusalCode::kNotAnswering, agent->host() + " " + evidence, Milliseconds(0)});
    lose(*agent, evidence, LinkEnd::kOpen);
  }
}

// The next rank 0 must have a store open. It has, unless this round follows the last one within a
// round trip.
void Run::start_or_await() {
  if (!answer_deadline_) answer_deadline_ = now_ + kAnswerMax;
  const bool waits = awaited_ != nullptr && awaited_->store_port == 0 && !is_due(answer_deadline_);
  if (waits) return;
  const std::vector<Agent*> order = next_order();
  if (order.front()->store_port != 0) return start_round(order);
  awaited_ = order.front();
  if (!is_due(answer_deadline_)) return;
  const std::string evidence = reasons::not_answering(awaited_->last.number, kAnswerMax);
  send(awaited_->link,
       Refused{RefusalCode::kNotAnswering, awaited_->host() + " " + evidence, Milliseconds(0)});
  lose(*std::exchange(awaited_, nullptr), evidence, LinkEnd::kOpen);
  answer_deadline_.reset();
  settle_forming();
}

std::vector<Agent*> Run::next_order() const {
  std::vector<Agent*> agents(roster_.by_silence().begin(), roster_.by_silence().end());
  std::vector<Candidate> candidates;
  candidates.reserve(agents.size());
  for (const Agent* agent : agents) {
    Candidate candidate;
    const bool survivor = formed_ && agent->last == last_;
    if (survivor) candidate.previous = agent->group_rank;
    candidate.node_rank = agent->hello.node_rank;
    candidate.scheduler_index = agent->hello.scheduler_index;
    candidate.host = agent->host();
    candidate.arrival = agent->arrival;
    candidates.push_back(std::move(candidate));
  }
  const bool fixed = terms().nodes_min == terms().nodes_max;
  const auto order = group_order(candidates, fixed ? Membership::kFixed : Membership::kElastic);
  std::vector<Agent*> chosen;
  for (const std::size_t index : order) chosen.push_back(agents[index]);
  return chosen;
}

void Run::start_round(const std::vector<Agent*>& order) {
  const auto size = std::min(order.size(), static_cast<std::size_t>(terms().nodes_max));
  std::vector<Slot> slots;
  for (std::size_t i = 0; i < size; ++i) {
    slots.push_back({order[i]->hello.local_world_size, order[i]->hello.role});
  }
  const std::vector<Placement> placements = assign_ranks(slots);
  const int nodes = static_cast<int>(size);
  if (!formed_) {
    why_ = nodes == terms().nodes_max ? reasons::all_here(nodes)
                                      : reasons::last_call_over(nodes, terms());
  }
  world_size_ = placements.front().world_size.value();
  const Round next(++highest_);
  why_ = options_.single_node
             ? reasons::round_of_one(next, restarts_, terms(), restart_delay_)
             : reasons::round_started(last_.number, next, why_, nodes, WorldSize(world_size_));
  last_ = RoundStamp{next, options_.author};
  formed_ = true;
  phase_ = Phase::kRunning;
  members_.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(size));
  members_here_ = unanswered_ = nodes;
  succeeded_ = 0;
  failures_.clear();
  awaited_ = nullptr;
  survivors_told_ = true;
  others_unknown_ = false;
  ++counters_.rounds;
  for (auto* one : {&join_deadline_, &last_call_, &restart_at_, &announce_at_}) one->reset();
  running_since_ = now_;
  answer_deadline_ = now_ + kAnswerMax;
  note(Level::kInfo, why_);
  round_restarts_ = restarts_;
  round_reason_ = why_;
  master_port_ = members_.front()->store_port;
  shared_address_.clear();
  for (std::size_t i = 0; i < size; ++i) {
    place(*order[i], placements[i]);
    const Peer& peer = order[i]->peer;
    if (shared_address_.empty() && !is_loopback(peer.address)) shared_address_ = peer.local_address;
  }
  for (const Agent* agent : members_) send(agent->link, start_message(*agent));
  members_.front()->store_port = 0;
  for (std::size_t i = size; i < order.size(); ++i) {
    if (is_active(order[i]->state)) strays_.push_back(order[i]->hello.agent);
    greet(*order[i]);
  }
}

void Run::place(Agent& agent, const Placement& placement) {
  agent.last = last_;
  agent.runs = last_.number;
  agent.group_rank = placement.group_rank;
  agent.placement = placement;
  agent.answered = false;
  agent.failure.reset();
  agent.running_at = now_;
  roster_.set_state(agent, NodeState::kStarting);
}

StartRound Run::start_message(const Agent& agent) const {
  StartRound start;
  start.stamp = last_;
  start.group_rank = agent.placement.group_rank;
  start.group_size = agent.placement.group_size;
  start.rank_base = agent.placement.rank_base;
  start.world_size = agent.placement.world_size;
  start.role_rank_base = agent.placement.role_rank_base;
  start.role_world_size = agent.placement.role_world_size;
  start.master_address = master_address_for(agent);
  start.master_port = master_port_;
  start.restarts = round_restarts_;
  start.reason = round_reason_;
  return start;
}

// A rank 0 beside the coordinator came over loopback; the others reach it where they reach the
// coordinator.
std::string Run::master_address_for(const Agent& agent) const {
  const Agent& zero = *members_.front();
  if (!zero.hello.address.empty()) return zero.hello.address;
  if (!is_loopback(zero.peer.address)) return zero.peer.address;
  if (!is_loopback(agent.peer.address)) return agent.peer.local_address;
  return shared_address_.empty() ? zero.peer.address : shared_address_;
}

void Run::end_round(std::string why) {
  phase_ = Phase::kForming;
  pace_.ended(now_ - running_since_);
  why_ = std::move(why);
  members_.clear();
  claims_.clear();
  members_here_ = 0;
  awaited_ = nullptr;
  survivors_told_ = false;
  for (auto* one : {&join_deadline_, &last_call_, &restart_at_, &answer_deadline_}) one->reset();
  if (!announce_at_) announce_at_ = std::max(now_, announced_at_) + kAnnounceInterval;
}

// Too few nodes remain for a new round: the workers could only wait for peers that are gone.
void Run::stop_survivors() {
  if (std::exchange(survivors_told_, true)) return;
  note(Level::kInfo, why_);  // the agents print it
  for (Agent* agent : roster_.by_silence()) {
    if (is_active(agent->state)) send_stop(*agent, why_);
  }
}

}  // namespace ddprun::round

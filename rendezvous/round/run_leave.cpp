// Agents that leave on purpose, are lost or silent, and what that means for the round and the run.
// Silence is a loss where the run continues without the node. Where too few nodes would be left for
// a round it is none: the ranks could only be stopped and started again, and the node may be
// suspended, or the network be down for a moment. Its round waits for it, for as long as a run
// waits for any node.
#include <algorithm>
#include <utility>

#include "base/duration_text.hpp"
#include "rendezvous/round/run.hpp"

namespace ddprun::round {

using namespace protocol;

void Run::take(Agent& agent, const Leave& leave) {
  if (leave.all_nodes && may_end_run(agent)) return stop_everywhere(agent, leave);
  if (leave.requested && agent.hello.runs_coordinator && may_settle(agent)) {
    agent.leave = leave;
    resigning_ = agent.hello.agent;
    return;
  }
  if (!may_follow_success(agent)) return take_up(agent, leave);
  if (!agent.leave) leavers_.push_back({agent.hello.agent});
  agent.leave = leave;
}

// A spare node has no part in what it would end, and any host that reaches a run without a secret
// can become one. A candidate does not speak for the run, nor does one node of several for a round
// that no other one claims.
bool Run::may_end_run(const Agent& agent) const {
  const bool lives = in<Stopping>() == nullptr && in<Over>() == nullptr;
  if (!lives || authority_.is_candidate()) return false;
  const auto* rebuilding = in<Rebuilding>();
  if (rebuilding == nullptr) return agent.last == rounds_.last();
  const ClaimedPlaces& places = rebuilding->places;
  return agent.last == places.stamp() && places.has_majority();
}

void Run::stop_everywhere(Agent& agent, const Leave& leave) {
  agent.leave = leave;  // it stays for the verdict
  const std::string sentence = reasons::stopped_everywhere(describe(agent, leave.reason));
  if (restarts_.answered()) return finish_failed({sentence}, kLongAgo);
  Stopping stopping;
  stopping.requested = leave.requested;
  stopping.verdict = Done{leave.exit_code, sentence};
  stop(std::move(stopping));
}

// No rank of its own has to be stopped: perhaps all ranks of the round had exited with code 0 when
// this node was told to leave, and other nodes' reports of that are on their way.
bool Run::may_follow_success(const Agent& agent) const {
  if (in<Running>() == nullptr || restarts_.answered()) return false;
  return is_member(agent) ? agent.state == NodeState::kSucceeded : agent.hello.runs_coordinator;
}

/// Whether the round was just begun, and may be settled without this node in a moment: other nodes
/// can continue it then.
bool Run::may_settle(const Agent& own) const {
  const auto* running = in<Running>();
  if (running == nullptr || !authority_.awaits_votes()) return false;
  if (running->round.unanswered() <= (own.answered ? 0 : 1)) return false;
  const auto& members = running->round.members();
  return std::any_of(members.begin(), members.end(), [&own](const Agent* member) {
    return member != nullptr && member != &own && !member->answered && member->link != kNoLink;
  });
}

void Run::take_up_own_leave() {
  if (!resigning_) return;
  Agent* own = roster_.by_id(*resigning_);
  const bool waits = own != nullptr && own->leave;
  if (waits && may_settle(*own)) return;
  resigning_.reset();
  if (waits) take_up(*own, *std::exchange(own->leave, std::nullopt));
}

// Behind the answers of all members, or once the round has ended anyway.
void Run::take_up_leaves() {
  auto* stopping = in<Stopping>();
  if (!leavers_.empty() && stopping != nullptr) settle(*stopping);  // a success is for them too
  while (!leavers_.empty()) {
    auto* running = in<Running>();
    if (running != nullptr && running->round.unanswered() > 0) return;
    if (running != nullptr && !leavers_.front().asked) {
      ask(*running);
      for (Leaver& leaver : leavers_) leaver.asked = true;
      continue;
    }
    Agent* agent = roster_.by_id(leavers_.front().agent);
    leavers_.pop_front();
    const bool waits = agent != nullptr && agent->leave;
    if (waits) take_up(*agent, *std::exchange(agent->leave, std::nullopt));
  }
}

// A node that leaves on purpose takes the run along if too few remain: the operator stopped it. A
// verdict that is known holds for all nodes, and no later leave replaces it.
void Run::take_up(Agent& agent, const Leave& leave) {
  if (auto* stopping = in<Stopping>()) {
    if (stopping->verdict.failure) {
      agent.leave = leave;  // conclude() has the report for it
      return;
    }
    out_.send(agent.link, stopping->verdict);
  }
  const reasons::NodeLost node = describe(agent, leave.reason);
  const std::string sentence = reasons::left(node);
  const int remaining = roster_.heard() - (agent.silent_since ? 0 : 1);
  const bool too_few = remaining < terms().nodes_min;
  // Where no other coordinator follows, the run ends with it.
  const bool hosts = agent.hello.runs_coordinator && !agreement_.record();
  if (hosts && authority_.is_candidate()) return resign(agent, "");
  const bool follows = !too_few && leave.requested && can_be_followed(agent);
  if (hosts && follows) {
    out_.send(agent.link, LetGo{reasons::continues_elsewhere(nodes_without(agent))});
    return resign(agent, sentence);
  }
  const bool was_in = hosts || agent.last.number > Round(0);
  if ((too_few || hosts) && was_in && failure_explains(agent, leave)) {
    agent.leave = leave;
    return finish_failed({options_.single_node ? leave.reason : sentence}, kLongAgo);
  }
  const auto* forming = in<Forming>();
  const bool restarts = forming != nullptr && forming->restart_at && agent.last == rounds_.last();
  const bool works =
      in<Running>() != nullptr && is_member(agent) && agent.state != NodeState::kSucceeded;
  const bool lives = in<Stopping>() == nullptr && in<Over>() == nullptr;
  const RoundEnd end = round_end_without(agent);
  const bool ends = (lives && hosts) || ((works || restarts) && too_few);
  if (lives) {
    const int nodes = nodes_without(agent);
    out_.send(agent.link,
              LetGo{ends ? reasons::ends_everywhere() : reasons::without_node(nodes, terms())});
  }
  remember(agent, sentence);
  let_go(agent);
  if (!ends) return after_loss(end, sentence);
  ++counters_.losses;
  Stopping stopping;
  stopping.requested = leave.requested;
  Done& verdict = stopping.verdict;
  verdict = {leave.exit_code, too_few ? reasons::left_too_few(sentence, remaining, terms())
                                      : reasons::left_with_coordinator(sentence)};
  verdict.node_lost = true;
  stop(std::move(stopping));
}

// The rule of a candidate that the kernel of this host refuses, for its members that are here.
bool Run::can_be_followed(const Agent& own) const {
  const auto* running = in<Running>();
  if (running == nullptr || !authority_.is_settled()) return false;
  int here = 0;
  bool has_successor = false;
  for (const Agent* member : running->round.members()) {
    if (member == nullptr || member == &own || member->link == kNoLink) continue;
    if (member->silent_since) continue;
    ++here;
    has_successor = has_successor || may_follow(*member);
  }
  return has_successor && 2 * here > running->round.nodes() - (is_member(own) ? 1 : 0);
}

/// Its node counts as ended from now on: it takes part in no round, and claims none. Of a
/// candidate, which does not speak for the run, only the links end.
void Run::resign(const Agent& own, const std::string& why) {
  const bool cuts_short = is_member(own) && own.state != NodeState::kSucceeded;
  for (const Agent* agent : roster_.by_silence()) {
    const bool is_told = agent != &own && agent->link != kNoLink && !authority_.is_candidate();
    if (is_told) out_.send(agent->link, Resigned{why, cuts_short});
  }
  if (!authority_.is_candidate()) out_.note(Level::kInfo, reasons::resigned(why));
  resigned_ = true;
  enter(Over{Ended{{}, now_, 0}, now_, true});
  out_.add(Resign{});
}

/// How many nodes the run has when this one has left; spare nodes do not count.
int Run::nodes_without(const Agent& agent) const {
  const auto* running = in<Running>();
  if (running != nullptr && !is_member(agent)) return running->round.nodes();
  return std::min(roster_.size() - losing_ - 1, terms().nodes_max);
}

/// For those who look at the run: a node that has gone is not one that never was.
void Run::remember(const Agent& agent, const std::string& why) {
  GoneNode node{agent.host(), agent.peer.address, "", agent.hello.version, why};
  if (agent.last.number.value() > 0 && agent.group_rank >= 0) {
    node.ranks = reasons::ranks_text(agent.placement.rank_base, agent.hello.local_world_size);
  }
  gone_.push_back({std::move(node), now_});
  if (gone_.size() > kGoneMax) gone_.pop_front();
}

void Run::let_go(Agent& agent) {
  if (auto* rebuilding = in<Rebuilding>()) rebuilding->places.ended(agent);
  authority_.lose(agent, Majority::Loss::kEnded);
  out_.close(agent.link);
  forget(agent);
}

// Whether workers of the failed round may still be ending, here or elsewhere: then the failure was
// before the cause of this leave.
bool Run::failure_explains(const Agent& agent, const Leave& leave) const {
  const auto& failure = restarts_.answered();
  if (!failure || (in<Running>() == nullptr && in<Forming>() == nullptr)) return false;
  const int others = roster_.starting() - (agent.state == NodeState::kStarting ? 1 : 0);
  return leave.round == failure->round || others > 0;
}

void Run::lose(Agent& agent, const std::string& evidence, LinkEnd link_end) {
  const bool overtaken = explains_failure(agent);
  const RoundEnd end = overtaken ? RoundEnd::kEnds : round_end_without(agent);
  const std::string sentence = reasons::lost(describe(agent, evidence));
  remember(agent, in<Over>() != nullptr ? reasons::ended_with_run() : sentence);
  if (link_end == LinkEnd::kOpen) out_.close(agent.link);
  authority_.lose(agent, loss_of(agent, link_end == LinkEnd::kGone));
  forget(agent);
  if (overtaken) restarts_.forget_answered();
  after_loss(end, sentence);
  if (overtaken) let_leavers_go();
}

// Those that waited for a report that will not follow.
void Run::let_leavers_go() {
  std::vector<Agent*> leavers;
  for (Agent* agent : roster_.by_silence()) {
    if (agent->leave) leavers.push_back(agent);
  }
  for (Agent* agent : leavers) {
    const Leave leave = *std::exchange(agent->leave, std::nullopt);
    const bool spare = agent->runs == Round(0);
    if (!spare) send_stop(*agent, why_);  // without the verdict that it was sent
    take(*agent, leave);
  }
}

// The loss of a node can be noticed after the failure elsewhere that it caused. A node that has
// sent nothing since that failure was lost before it; one that sends heartbeats was not.
bool Run::explains_failure(const Agent& agent) const {
  const auto* stopping = in<Stopping>();
  if (stopping == nullptr || !stopping->verdict.failure || !is_member(agent)) return false;
  // Of one whose silence was known the failure is a consequence that its round has waited for.
  const bool was_known = agent.call != 0;
  return is_active(agent.state) && agent.heard < stopping->failed_at && !was_known;
}

// A node whose workers have all succeeded is missed only if it holds the store of the round.
Run::RoundEnd Run::round_end_without(const Agent& agent) const {
  if (in<Running>() == nullptr || !is_member(agent)) return RoundEnd::kGoesOn;
  const bool done = agent.state == NodeState::kSucceeded && agent.group_rank != 0;
  return done ? RoundEnd::kGoesOn : RoundEnd::kEnds;
}

void Run::after_loss(RoundEnd end, const std::string& sentence) {
  ++counters_.losses;
  if (in<Over>() != nullptr) return;
  if (end == RoundEnd::kGoesOn) return out_.note(Level::kWarning, sentence);
  end_round(sentence + "; " + reasons::remain(roster_.heard() - losing_, terms()));
}

void Run::forget(Agent& agent) {
  forget_quiet(agent);
  duplicates_.forget(agent.hello.agent, out_);
  count_visit(agent);
  if (LiveRound* round = live_round()) round->forget(agent);
  if (auto* rebuilding = in<Rebuilding>()) rebuilding->places.forget(agent);
  if (auto* forming = in<Forming>()) forming->awaited = nullptr;
  const bool succeeded = agent.state == NodeState::kSucceeded;
  if (!succeeded && agent.last == rounds_.last()) rounds_.set_incomplete(true);
  strays_.erase(agent.arrival);
  roster_.remove(agent);
}

reasons::NodeLost Run::describe(const Agent& agent, const std::string& evidence) const {
  reasons::NodeLost node{agent.host(), "", evidence};
  if (is_member(agent)) {
    node.ranks = reasons::ranks_text(agent.placement.rank_base, agent.hello.local_world_size);
  }
  return node;
}

void Run::on(const Tick&) {
  if (!agreement_.is_known()) return;
  settle_duplicates();
  while (Agent* longest = roster_.longest_heard()) {
    if (now_ - longest->heard < terms().silence_max()) break;
    // An agent of this process was silent because the process was: a stall too short to notice
    // (extend_deadlines_after_stall) can still have been longer than the rest of its limit.
    if (longest->hello.runs_coordinator && longest->link != kNoLink) {
      roster_.heard(*longest, now_);
      continue;
    }
    if (take_duplicate(*longest)) continue;
    roster_.begin_silence(*longest);
    authority_.lose(*longest, Majority::Loss::kSilent);
  }
}

void Run::settle_silent() {
  if (roster_.silent() == 0) return;
  auto* running = in<Running>();
  if (running != nullptr && must_await_silent(*running)) return await_silent(*running);
  // A verdict does not wait for a node whose ranks have ended, and goes to it, too.
  const auto is_awaited = [this](const Agent* agent) {
    return in<Stopping>() == nullptr || is_active(agent->state);
  };
  while (roster_.silent() > 0) {
    const auto& agents = roster_.by_silence();
    const auto end = std::next(agents.begin(), roster_.silent());
    const auto found = std::find_if(agents.begin(), end, is_awaited);
    if (found == end) return;
    lose(**found, silence_of(**found), LinkEnd::kOpen);
  }
}

/// Whether no round may follow without them, here or where another coordinator has them.
bool Run::must_await_silent(const Running& running) const {
  if (is_due(running.return_deadline)) return false;
  const bool may_go_on = roster_.heard() >= terms().nodes_min && authority_.may_decide();
  const bool others_may = !authority_.may_decide() && roster_.silent() >= terms().nodes_min;
  return !may_go_on && !others_may;
}

/// The same of one whose link the network has broken.
bool Run::would_be_awaited(const Agent& agent) const {
  const int gone = losing_ + (agent.silent_since ? 0 : 1);
  return in<Running>() != nullptr && roster_.heard() - gone < terms().nodes_min;
}

// The answer to the question comes from an agent that has stayed on this link; what it had sent
// before is no proof of that.
void Run::await_silent(Running& running) {
  const auto& agents = roster_.by_silence();
  const auto end = std::next(agents.begin(), roster_.silent());
  for (auto at = std::find_if(agents.begin(), end, [](const Agent* one) { return one->call == 0; });
       at != end; ++at) {
    Agent& agent = **at;
    agent.call = next_question();
    forget_quiet(agent);
    out_.send(agent.link, Beat{agent.call});
    if (!running.return_deadline) running.return_deadline = now_ + terms().join_timeout;
    announcer_.request(now_);
  }
}

/// It has answered on the link that it had.
void Run::end_silence(Agent& agent) {
  authority_.hear(agent);
  come_back(agent);
}

// With it there may be enough nodes to continue without the others.
void Run::come_back(Agent& agent) {
  const Duration silence = now_ - *agent.silent_since;
  roster_.end_silence(agent, now_);
  settle_silent();
  auto* running = in<Running>();
  if (running == nullptr) return;
  // What it owes an answer to waited for it.
  if (is_member(agent) && !agent.answered) running->answer_deadline = now_ + kAnswerMax;
  const std::string back = reasons::back(describe(agent, ""), silence, rounds_.last().number);
  out_.note(Level::kInfo, back);
  if (roster_.silent() > 0) return announcer_.request(now_);
  running->return_deadline.reset();
  announcer_.cancel();
  for (const Agent* one : roster_.by_silence()) out_.send(one->link, waiting(back));
}

/// A node that is started again has the node rank of the silent one.
void Run::replace_silent(const Hello& hello) {
  if (!hello.node_rank) return;
  Agent* holder = roster_.by_node_rank(*hello.node_rank);
  if (holder != nullptr) lose(*holder, silence_of(*holder), LinkEnd::kOpen);
}

std::string Run::silence_of(const Agent& agent) const {
  const Duration silence = now_ - agent.silent_since.value_or(agent.heard);
  const bool was_awaited = agent.call != 0;
  return was_awaited ? reasons::silent_for(silence) : reasons::silent(terms());
}

/// What the round waits for.
std::string Run::awaited_text() const {
  std::vector<std::string> hosts;
  const auto& agents = roster_.by_silence();
  const auto end = std::next(agents.begin(), roster_.silent());
  std::transform(agents.begin(), end, std::back_inserter(hosts),
                 [](const Agent* agent) { return agent->host(); });
  return reasons::silent_nodes_awaited(hosts, terms());
}

}  // namespace ddprun::round

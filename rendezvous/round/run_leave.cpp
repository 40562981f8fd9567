// Agents that leave on purpose, are lost or silent, and what that means for the round and the run.
// Silence is a loss where the run continues without the node. Where too few nodes would be left for
// a round it is none: the ranks could only be stopped and started again, and the node may be
// suspended, or the network be down for a moment. Its round waits for it, for as long as a run
// waits for any node.
#include <algorithm>
#include <utility>

#include "base/format.hpp"
#include "rendezvous/round/run.hpp"

namespace ddprun::round {

using namespace protocol;

void Run::take(Agent& agent, const Leave& leave) {
  if (leave.all_nodes && may_end_run(agent)) {
    agent.leave = leave;  // it stays for the verdict
    const std::string sentence = reasons::stopped_everywhere(describe(agent, leave.reason));
    if (restarts_.answered()) return finish_failed({sentence}, kLongAgo);
    Stopping stopping;
    stopping.requested = leave.requested;
    stopping.verdict = Done{leave.exit_code, sentence};
    return stop(std::move(stopping));
  }
  if (leave.requested && agent.hello.runs_coordinator && others_may_vote(agent)) {
    agent.leave = leave;
    resigning_ = agent.hello.agent;
    return;
  }
  // No rank of its own has to be stopped: perhaps all ranks of the round had exited with code 0
  // when this node was told to leave, and other nodes' reports of that are on their way.
  const bool none_runs =
      is_member(agent) ? agent.state == NodeState::kSucceeded : agent.hello.runs_coordinator;
  const bool may_follow_success = in<Running>() != nullptr && !restarts_.answered() && none_runs;
  if (!may_follow_success) return take_up(agent, leave);
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

/// Whether the round was just begun, and may be settled without this node in a moment: other nodes
/// can continue it then.
bool Run::others_may_vote(const Agent& own) const {
  return authority_.awaits_votes() && live_round(state_)->awaits_others(own);
}

// Behind the answers of all members, or once the round has ended anyway. The coordinator's own node
// leaves last.
void Run::take_up_leaves() {
  const auto take_up_leave_of = [this](Agent* agent) {
    const bool waits = agent != nullptr && agent->leave;
    if (waits) take_up(*agent, *std::exchange(agent->leave, std::nullopt));
  };
  auto* stopping = in<Stopping>();
  if (!leavers_.empty() && stopping != nullptr) settle(*stopping);  // a success is for them too
  while (!leavers_.empty()) {
    auto* running = in<Running>();
    if (running != nullptr && running->round.unanswered() > 0) break;
    if (running != nullptr && !leavers_.front().asked) {
      running->ask(now_, out_);
      for (Leaver& leaver : leavers_) leaver.asked = true;
      continue;
    }
    Agent* agent = roster_.by_id(leavers_.front().agent);
    leavers_.pop_front();
    take_up_leave_of(agent);
  }
  if (!resigning_) return;
  Agent* own = roster_.by_id(*resigning_);
  if (own != nullptr && own->leave && others_may_vote(*own)) return;
  resigning_.reset();
  take_up_leave_of(own);
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
  // Spare nodes do not count.
  const auto* running = in<Running>();
  const int nodes = running != nullptr && !is_member(agent)
                        ? running->round.nodes()
                        : std::min(roster_.size() - losing_ - 1, terms().nodes_max);
  const bool can_follow =
      running != nullptr && authority_.is_settled() && running->round.can_follow(agent);
  if (hosts && !too_few && leave.requested && can_follow) {
    out_.send(agent.link, LetGo{reasons::continues_elsewhere(nodes)});
    return resign(agent, sentence);
  }
  const bool was_in = hosts || agent.last.number > Round(0);
  const auto* forming = in<Forming>();
  const bool others_start = roster_.starting() > (agent.state == NodeState::kStarting ? 1 : 0);
  const bool is_consequence =
      (running != nullptr || forming != nullptr) && restarts_.explains(leave.round, others_start);
  if ((too_few || hosts) && was_in && is_consequence) {
    agent.leave = leave;
    return finish_failed({options_.single_node ? leave.reason : sentence}, kLongAgo);
  }
  const bool restarts = forming != nullptr && forming->restart_at && agent.last == rounds_.last();
  const bool works = running != nullptr && is_member(agent) && agent.state != NodeState::kSucceeded;
  const bool lives = in<Stopping>() == nullptr && in<Over>() == nullptr;
  const bool ends_round = running != nullptr && running->round.needs(agent);
  const bool ends = (lives && hosts) || ((works || restarts) && too_few);
  if (lives) {
    out_.send(agent.link,
              LetGo{ends ? reasons::kEndsEverywhere : reasons::without_node(nodes, terms())});
  }
  remember(agent, sentence);
  if (auto* rebuilding = in<Rebuilding>()) rebuilding->places.ended(agent);
  authority_.lose(agent, Majority::Loss::kEnded);
  out_.close(agent.link);
  forget(agent);
  if (!ends) return after_loss(ends_round, sentence);
  ++counters_.losses;
  Stopping stopping;
  stopping.requested = leave.requested;
  Done& verdict = stopping.verdict;
  verdict = {leave.exit_code, too_few ? reasons::left_too_few(sentence, remaining, terms())
                                      : reasons::left_with_coordinator(sentence)};
  verdict.node_lost = true;
  stop(std::move(stopping));
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

/// For those who look at the run: a node that has gone is not one that never was.
void Run::remember(const Agent& agent, const std::string& why) {
  GoneNode node{agent.host(), agent.peer.address, "", agent.hello.version, why};
  if (agent.last.number.value() > 0 && agent.group_rank >= 0) {
    node.ranks = reasons::ranks_text(agent.placement.rank_base, agent.hello.local_world_size);
  }
  gone_.emplace_back(std::move(node), now_);
  if (gone_.size() > kGoneMax) gone_.pop_front();
}

/// It has not answered this round in time.
void Run::drop(Agent& agent, Round unanswered) {
  const std::string evidence = reasons::not_answering(unanswered, kAnswerMax);
  out_.send(agent.link,
            Refused{RefusalCode::kNotAnswering, agent.host() + " " + evidence, Milliseconds(0)});
  lose(agent, evidence, LinkEnd::kOpen);
}

void Run::lose_silent(Agent& agent) {
  const bool was_awaited = agent.call != 0;
  const Duration silence = now_ - agent.silent_since.value_or(agent.heard);
  lose(agent, was_awaited ? reasons::silent_for(silence) : reasons::silent(terms()),
       LinkEnd::kOpen);
}

void Run::lose(Agent& agent, const std::string& evidence, LinkEnd link_end) {
  const auto* stopping = in<Stopping>();
  const auto* running = in<Running>();
  const bool overtaken = stopping != nullptr && stopping->is_explained_by(agent);
  const bool ends_round = overtaken || (running != nullptr && running->round.needs(agent));
  const std::string sentence = reasons::lost(describe(agent, evidence));
  remember(agent, in<Over>() != nullptr ? reasons::kEndedWithRun : sentence);
  if (link_end == LinkEnd::kOpen) out_.close(agent.link);
  // Its kernel has closed the link, without a word that it connects again, while the process could
  // not yet have taken the coordinator for lost: it has ended. After that it may be a member of
  // another coordinator's round. A stall of this process is no time in which it was heard.
  const Duration surely = terms().silence_max() - terms().keep_alive_interval;
  const bool has_ended = link_end == LinkEnd::kGone && now_ - agent.spoke < surely;
  authority_.lose(agent, has_ended ? Majority::Loss::kEnded : Majority::Loss::kSilent);
  forget(agent);
  if (overtaken) restarts_.forget_answered();
  after_loss(ends_round, sentence);
  if (!overtaken) return;
  std::vector<Agent*> leavers;  // that waited for a report that will not follow
  for (Agent* one : roster_.by_silence()) {
    if (one->leave) leavers.push_back(one);
  }
  for (Agent* leaver : leavers) {
    const Leave leave = *std::exchange(leaver->leave, std::nullopt);
    const bool spare = leaver->runs == Round(0);
    if (!spare) send_stop(*leaver, why_);  // without the verdict that it was sent
    take(*leaver, leave);
  }
}

void Run::after_loss(bool ends_round, const std::string& sentence) {
  ++counters_.losses;
  if (in<Over>() != nullptr) return;
  if (!ends_round) return out_.note(Level::kWarning, sentence);
  end_round(sentence + "; " + reasons::remain(roster_.heard() - losing_, terms()));
}

void Run::forget(Agent& agent) {
  forget_quiet(agent);
  duplicates_.forget(agent.hello.agent, out_);
  if (in<Stopping>() == nullptr && in<Over>() == nullptr) {
    const std::string visits = join_pace_.left(agent, now_);
    if (!visits.empty()) out_.note(Level::kWarning, visits);
  }
  if (LiveRound* round = live_round(state_)) round->forget(agent);
  if (auto* rebuilding = in<Rebuilding>()) rebuilding->places.forget(agent);
  if (auto* forming = in<Forming>()) forming->awaited = nullptr;
  const bool succeeded = agent.state == NodeState::kSucceeded;
  if (!succeeded && agent.last == rounds_.last()) rounds_.set_incomplete(true);
  strays_.erase(agent.arrival);
  roster_.remove(agent);
}

void Run::settle_silent() {
  if (roster_.silent() == 0) return;
  auto* running = in<Running>();
  if (running != nullptr && must_await_silent(*running)) {
    for (Agent* agent : roster_.by_silence()) {
      if (!agent->silent_since) return;
      if (agent->call != 0) continue;
      // An answer shows that the agent has stayed on this link; what it had sent before does not.
      agent->call = out_.next_question();
      running->hang.forget(agent->arrival);
      out_.send(agent->link, Beat{agent->call});
      if (!running->return_deadline) running->return_deadline = now_ + terms().join_timeout;
      announcer_.request(now_);
    }
    return;
  }
  // A verdict does not wait for a node whose ranks have ended, and goes to it, too.
  const auto is_awaited = [this](const Agent* agent) {
    return in<Stopping>() == nullptr || is_active(agent->state);
  };
  while (roster_.silent() > 0) {
    const auto& agents = roster_.by_silence();
    const auto end = std::next(agents.begin(), roster_.silent());
    const auto found = std::find_if(agents.begin(), end, is_awaited);
    if (found == end) return;
    lose_silent(**found);
  }
}

/// Whether no round may follow without them, here or where another coordinator has them.
bool Run::must_await_silent(const Running& running) const {
  if (is_due(running.return_deadline)) return false;
  const bool may_go_on = roster_.heard() >= terms().nodes_min && authority_.may_decide();
  const bool others_may = !authority_.may_decide() && roster_.silent() >= terms().nodes_min;
  return !may_go_on && !others_may;
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

}  // namespace ddprun::round

// How agents join a run: admitted, refused, held back, or back after a lost link.
#include <algorithm>
#include <utility>

#include "rendezvous/protocol/limits.hpp"
#include "rendezvous/round/run.hpp"

namespace ddprun::round {

using namespace protocol;

void Run::on_hello(const Received& received, const Hello& hello) {
  if (const RunRecord::Verdict* missed = missed_verdict(agreement_.ended(), hello)) {
    out_.send(received.link, Done{missed->exit_code, missed->text});
    return out_.close(received.link);
  }
  if (const auto* over = in<Over>()) return late_hello(*over, received, hello);
  Agent* speaker = roster_.by_link(received.link);
  const std::string waits = duplicates_.agent_on(received.link);
  const bool other_agent = (speaker != nullptr && speaker->hello.agent != hello.agent) ||
                           (!waits.empty() && waits != hello.agent.value());
  const std::optional<Refused> refused =
      other_agent ? Refused{RefusalCode::kMalformed, "one link, two agents", Milliseconds(0)}
                  : refusal_of(hello);
  if (refused) {
    refuse(received, hello, *refused);
    out_.close(received.link);
    duplicates_.forget(received.link);
    if (speaker != nullptr) lose(*speaker, refused->sentence, LinkEnd::kOpen);
    return;
  }
  const bool fresh = is_first_of_new_run(hello);
  if (fresh) begin_new_run(hello);
  if (fresh || !agreement_.is_known()) {
    agreement_.take(hello, received.peer);
    restarts_.limit(hello.terms.max_restarts);
  }
  if (Agent* known = roster_.by_id(hello.agent)) {
    // The old link may still look alive here: the agent noticed first, or the two raced.
    if (known->link != kNoLink && known->link != received.link) {
      const Duration limit = std::min<Duration>(kDuplicateMax, terms().silence_max() / 4);
      return duplicates_.add(*known, received, now_ + limit, out_);
    }
    // What it said on an earlier link can be read later, if both waited to be accepted.
    if (hello.age < known->hello.age) return out_.close(received.link);
    return take_back(*known, received, hello);
  }
  // A node that is started again has the node rank of the silent one.
  Agent* holder = hello.node_rank ? roster_.by_node_rank(*hello.node_rank) : nullptr;
  if (holder != nullptr) lose_silent(*holder);
  // As under torchrun a node that differs takes part.
  for (Difference& one : differences(hello, agreement_.agreed())) {
    out_.add(Note{Level::kWarning, std::move(one.text), std::move(one.in_log)});
  }
  admit(received, hello);
}

// Notes are shown on the status page, and commands may have secrets.
void Run::refuse(const Received& received, const Hello& hello, const Refused& refused) {
  ++counters_.refusals;
  const std::string who = "refused " + hello.host + ": ";
  const bool has_commands = refused.code == RefusalCode::kCommandDiffers;
  const std::string shown = has_commands ? "it runs another command" : refused.sentence;
  out_.add(Note{Level::kWarning, who + shown, has_commands ? who + refused.sentence : ""});
  // Who waits for a node learns that it was there, and why it does not come.
  refused_ = {hello.host, "; " + hello.host + " was refused: " + shown};
  if (in<Forming>() != nullptr) announcer_.request(now_);
  const std::string known = agreement_.is_known() ? agreement_.agreed().fingerprint
                                                  : agreement_.first_for(hello).fingerprint;
  out_.send(received.link, as_told(refused, hello, known, received.peer.is_proven));
}

// No agent is left that remembers the old one. Round numbers continue, so that workers of an old
// round stay fenced out. So does the budget of a run that all its nodes have lost at once.
void Run::begin_new_run(const Hello& hello) {
  const RestartCount used = agreement_.continues_record() ? restarts_.used() : RestartCount(0);
  agreement_.begin_new_run(hello);
  restarts_ = Restarts(used);
  if (options_.succeeded && options_.succeeded->at == kLongAgo) options_.succeeded->at = now_;
  rounds_.begin_new_run();
  authority_.begin_new_run();
  why_.clear();
  gone_.clear();
  enter(Forming{});
}

// No agent is connected, and this one has never heard of a round: it cannot mean the run that was
// here.
bool Run::is_first_of_new_run(const Hello& hello) const {
  const bool knows = hello.claim || hello.seen.value() > 0;
  return is_unused() || (roster_.empty() && !knows && in<Forming>() != nullptr);
}

bool Run::is_unused() const {
  return agreement_.is_known() && roster_.empty() && in<Forming>() != nullptr &&
         rounds_.highest() == Round(0) && !options_.succeeded;
}

std::optional<Refused> Run::refusal_of(const Hello& hello) const {
  if (auto refused = refuse_hello(hello)) return refused;
  if (auto refused = refuse_run(hello, options_.run_id)) return refused;
  const bool fresh = is_first_of_new_run(hello);
  const RunTerms run_terms =
      fresh || !agreement_.is_known() ? agreement_.first_for(hello) : agreement_.agreed();
  if (auto refused = refuse_terms(hello, run_terms)) return refused;
  if (auto refused = refuse_claim(hello, run_terms)) return refused;
  if (auto refused = rounds_.refusal_of(hello)) return refused;
  if (roster_.by_id(hello.agent) != nullptr) return std::nullopt;
  if (hello.node_rank) {
    const Agent* holder = roster_.by_node_rank(*hello.node_rank);
    if (holder != nullptr && !holder->silent_since) {
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

void Run::admit(const Received& received, const Hello& hello) {
  const bool alone = roster_.empty();
  Agent& agent = roster_.add(hello, received.link, received.peer, now_);
  agent.hello.claim.reset();
  std::string().swap(agent.hello.command);  // that of the run is in the agreement
  agent.came_later = rounds_.formed();
  agent.spoke = now_;
  ++counters_.joins;
  if (refused_.host == agent.host()) refused_ = {};
  const std::string another_version = agreement_.compare_version(hello);
  if (!another_version.empty()) out_.note(Level::kWarning, another_version);
  if (auto* running = in<Running>()) {
    running->welcome_at.reset();
    if (join_pace_.holds_back(agent, now_)) ++counters_.held_back;
  }
  if (auto* forming = in<Forming>()) {
    forming->abandoned_at.reset();
    forming->awaited = nullptr;
    const Round heard_of = hello.heard_of();
    const bool all_back = alone && rounds_.formed() && heard_of == rounds_.last().number;
    const bool counts =
        !rounds_.formed() || (hello.claim && rounds_.is_of_run(agent, *hello.claim));
    if (all_back || (counts && heard_of > rounds_.highest())) {
      // This coordinator does not know the round: its members have time to reconnect.
      why_ = reasons::awaiting_return(heard_of);
      const Duration wait =
          authority_.is_candidate() ? candidate_wait(terms()) : Duration(terms().silence_max());
      enter(Rebuilding{now_ + wait});
    }
  }
  rounds_.lift(hello.seen);
  if (hello.claim) weigh_claim(agent, *hello.claim);
  const bool forms = in<Forming>() != nullptr;
  const bool completes = forms && rounds_.formed() && roster_.size() == terms().nodes_min;
  if (completes) why_ += "; " + reasons::joined({agent.host()});
  if (forms || in<Rebuilding>() != nullptr) announcer_.request(now_);
  greet(agent);
}

void Run::greet(Agent& agent) {
  auto waiting = greeting(agent);
  if (!waiting || authority_.is_candidate()) return;
  const auto* running = in<Running>();
  if (running != nullptr && authority_.is_shared()) {
    waiting->successors = running->round.successors_for(agent);
  }
  agent.greeted = true;
  out_.send(agent.link, std::move(*waiting));
}

/// The answer to a hello; none if a round follows at once.
std::optional<Waiting> Run::greeting(const Agent& agent) const {
  if (const auto* forming = in<Forming>()) {
    const bool completes = roster_.size() >= terms().nodes_max || rounds_.formed();
    if (completes && roster_.size() >= terms().nodes_min) return std::nullopt;
    return waiting(reasons::waiting_count(roster_.size(), terms()) + refused_.text,
                   forming->join_deadline.value_or(now_ + wanted().wait));
  }
  if (const auto* rebuilding = in<Rebuilding>()) {
    if (rebuilding->places.complete()) return std::nullopt;
    return waiting(why_);
  }
  if (const auto* running = in<Running>()) {
    const int nodes = running->round.nodes();
    const int finished = running->round.finished();
    if (running->return_deadline) {  // it may take the place of a silent node
      if (!must_await_silent(*running)) return std::nullopt;
      return waiting(reasons::silent_nodes_awaited(roster_.silent_hosts(), terms()));
    }
    if (nodes >= terms().nodes_max) return waiting(reasons::spare(options_.run_id, terms()));
    if (finished > 0) return waiting(reasons::newcomer_while_finishing(finished, nodes));
    if (join_pace_.holds_back(agent, now_)) {
      const Pace pace = join_pace_.pace_of(agent.peer.address, now_);
      return waiting(reasons::held_back(pace.who, pace.visits, pace.until - now_));
    }
  }
  return std::nullopt;
}

void Run::take_back(Agent& agent, const Received& received, const Hello& hello) {
  // No agent is older than it was, and the time since: one that says so would keep out its own.
  const auto since = std::chrono::ceil<Milliseconds>(now_ - std::exchange(agent.greeted_at, now_));
  agent.hello.age = std::min(hello.age, agent.hello.age + since);
  if (agent.link != received.link) {
    out_.close(agent.link);
    forget_quiet(agent);
    roster_.relink(agent, received.link, received.peer);
  }
  roster_.heard(agent, now_);
  agent.spoke = now_;
  agent.store_port = hello.store_port;
  agent.hello.standby_port = hello.standby_port;
  agent.hello.runs_coordinator = hello.runs_coordinator;
  agent.hello.reached = hello.reached;
  if (hello.claim) rounds_.lift(hello.claim->stamp.number);
  if (agent.silent_since) {
    if (hello.claim) authority_.take_claim(agent, hello.claim->stamp);
    come_back(agent);
  }
  if (is_member(agent)) return resume_member(agent, hello);
  if (hello.claim) weigh_claim(agent, *hello.claim);
  greet(agent);
}

void Run::resume_member(Agent& agent, const Hello& hello) {
  const bool stops = in<Stopping>() != nullptr;
  const LiveRound& round = *live_round(state_);
  const RoundStamp lives = round.stamp();
  const bool knows = hello.claim && hello.claim->stamp == lives;
  if (knows) {
    authority_.take_claim(agent, hello.claim->stamp);
    // It reports again what it did meanwhile.
    count_answer(agent);
    if (!stops) return in<Running>()->ask_again(agent, now_, out_);
  }
  if (stops) {
    take_claim(agent, hello.claim.value_or(Claim{}));
    if (is_active(agent.state)) send_stop(agent, why_);
    return;
  }
  const bool ahead = hello.claim && hello.claim->stamp.number.value() >= lives.number.value();
  if (ahead) {
    end_round(reasons::lost(describe(agent, "came back from another coordinator's round")));
    return take_claim(agent, *hello.claim);
  }
  out_.send(agent.link, round.message_for(agent));
  in<Running>()->ask_again(agent, now_, out_);
}

/// The link that the agent has is gone, or silent: whether another one takes its place.
bool Run::take_duplicate(Agent& agent) {
  const auto taken = duplicates_.take(agent.hello.agent);
  if (!taken) return false;
  const auto& hello = std::get<Hello>(taken->hello.message);
  if (const auto* over = in<Over>()) {
    late_hello(*over, taken->hello, hello);
    return true;
  }
  take_back(agent, taken->hello, hello);
  for (const Received& received : taken->behind) on(received);
  return true;
}

}  // namespace ddprun::round

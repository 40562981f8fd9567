#include "rendezvous/round/run.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/assert.hpp"

namespace ddprun::round {

using namespace protocol;

static_assert(
    std::is_same_v<std::variant_alternative_t<static_cast<std::size_t>(Phase::kOver), PhaseState>,
                   Over>);

namespace {

[[nodiscard]] Rounds::Coordinator coordinator_of(const RunOptions& options) {
  const auto& candidate = options.succession.candidate;
  return {options.author, options.origin.empty() ? options.author : options.origin,
          candidate ? candidate->origin : "", options.knows_members};
}

}  // namespace

Run::Run(RunOptions options)
    : options_(std::move(options)),
      agreement_(options_.run_id, std::exchange(options_.record, std::nullopt)),
      rounds_(coordinator_of(options_)),
      authority_(options_.succession, options_.author) {
  DDPRUN_ASSERT(!options_.run_id.value().empty());
  DDPRUN_ASSERT(!options_.author.empty());
  const std::optional<RunRecord>& before = agreement_.record();
  if (before && !before->over) restarts_ = Restarts(RestartCount(before->restarts));
  if (before && before->over && before->over->exit_code == 0) {
    options_.succeeded = Ended{Done{0, before->over->text}, kLongAgo, before->over->nodes};
  }
}

Actions Run::step(const Event& event, TimePoint now) {
  if (resigned_) return {};
  now_ = std::max(now_, now);
  ticked_ = std::holds_alternative<Tick>(event);
  extend_deadlines_after_stall();
  if (ticked_) unread_ = false;
  std::visit([this](const auto& one) { on(one); }, event);
  settle();
  stop_strays();
  announce_if_due();
  arm();
  return out_.take();
}

void Run::on(const Received& received) {
  if (const auto* hello = std::get_if<Hello>(&received.message)) {
    return on_hello(received, *hello);
  }
  Agent* agent = roster_.by_link(received.link);
  if (agent == nullptr) {
    if (duplicates_.hold(received, out_)) return;
    // An agent that was taken for lost may not know yet: it is not refused, it may say hello again.
    ++counters_.stale;
    return out_.close(received.link);
  }
  roster_.heard(*agent, now_);
  agent->spoke = now_;
  std::visit(
      [&](const auto& message) {
        if constexpr (requires { take(*agent, message); }) {
          take(*agent, message);
        } else if constexpr (!std::is_same_v<decltype(message), const Unknown&>) {
          out_.send(agent->link, Unknown{"an agent does not say this"});
        }
      },
      received.message);
}

// An agent that was in a round is not left out of the next one. One that nothing shows to have been
// in any only waits, and may as well wait when it is back: else any number that say this, and do
// not come, would keep rounds from starting, or fill the memory.
void Run::take(Agent& agent, const Reconnecting&) {
  if (take_duplicate(agent)) return;
  out_.close(agent.link);
  const bool was_in = agent.since > Round(0) || rounds_.shows(agent);
  if (!was_in) return forget(agent);
  forget_quiet(agent);
  roster_.unlink(agent);
}

void Run::on(const LinksLost& lost) {
  for (const LinkLost& one : lost.links) losing_ += roster_.by_link(one.link) != nullptr ? 1 : 0;
  for (const LinkLost& one : lost.links) on(one);
  losing_ = 0;
}

void Run::on(const LinkLost& lost) {
  Agent* agent = roster_.by_link(lost.link);
  if (agent == nullptr) return duplicates_.forget(lost.link);
  --losing_;
  if (take_duplicate(*agent)) return;
  // Its next hello may be among what is not read yet.
  if (unread_ && in<Over>() == nullptr) {
    forget_quiet(*agent);
    return roster_.unlink(*agent);
  }
  if (lost.by_network) {
    authority_.lose(*agent, Majority::Loss::kSilent);
    const bool too_few = roster_.heard() - losing_ - 1 < terms().nodes_min;
    if (!agent->silent_since && in<Running>() != nullptr && too_few) {
      forget_quiet(*agent);
      return roster_.unlink(*agent);  // that is silence, which has its limit
    }
  } else if (auto* rebuilding = in<Rebuilding>()) {
    rebuilding->places.ended(*agent);
  }
  lose(*agent, lost.evidence, LinkEnd::kGone);
}

// The coordinator itself did not run. Agents may have given it up and be reconnecting: they have
// as long as after a restart of the coordinator. A shorter stall harms no agent: one that is alive
// has sent something, and that is read before a Tick.
void Run::extend_deadlines_after_stall() {
  if (!agreement_.is_known() || !armed_ || roster_.empty()) return;
  const Duration late = now_ - *armed_;
  if (late <= terms().keep_alive_interval) return;
  for (Agent* agent : roster_.by_silence()) agent->heard = now_;
  const Duration window = terms().silence_max();
  const Deadlines all = std::visit([](auto& state) { return state.deadlines(); }, state_);
  for (Deadline* const owed : all.owed) {
    if (owed != nullptr && *owed) *owed = std::max(**owed, now_ + window);
  }
  unread_ = true;
  out_.note(Level::kWarning, reasons::suspended(late, window));
}

void Run::on(const Shutdown& shutdown) {
  if (in<Over>() != nullptr || in<Stopping>() != nullptr) return;
  if (restarts_.answered()) return finish_failed({shutdown.reason}, kLongAgo);
  finish(Done{shutdown.exit_code, shutdown.reason});
}

void Run::on(const Tick&) {
  if (!agreement_.is_known()) return;
  for (const AgentId& id : duplicates_.due(now_)) {
    Agent* agent = roster_.by_id(id);  // what was said behind a hello may end others
    if (agent != nullptr) take_duplicate(*agent);
  }
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

// In this order, so that a round that has ended is followed by the next one in the same step.
void Run::settle() {
  settle_silent();
  if (auto* rebuilding = in<Rebuilding>()) settle(*rebuilding);
  if (auto* running = in<Running>()) settle(*running);
  take_up_leaves();
  settle_silent();  // no round awaits them that has ended meanwhile
  if (auto* forming = in<Forming>()) settle(*forming);
  if (auto* stopping = in<Stopping>()) settle(*stopping);
  if (auto* over = in<Over>(); over != nullptr && !over->finished) {
    over->finished = roster_.empty() || now_ >= over->linger_until;
    const Done& verdict = over->ended.verdict;
    if (over->finished) out_.add(Finish{verdict.exit_code, verdict.text});
  }
}

// A later deadline than the armed one is not worth a system call: the early Tick moves it.
void Run::arm() {
  Deadline next;
  const auto take = [&next](const Deadline& one) {
    if (one && (!next || *one < *next)) next = one;
  };
  // What is due was settled in this step already, or waits for a Tick.
  const auto take_later = [&](const Deadline& one) {
    if (one && *one > now_) take(one);
  };
  const auto take_owed = [&](const Deadline& one) { ticked_ ? take_later(one) : take(one); };
  const Deadlines all = std::visit([](auto& state) { return state.deadlines(); }, state_);
  for (const Deadline* one : all.others) take_later(one != nullptr ? *one : std::nullopt);
  for (const Deadline* one : all.owed) take_owed(one != nullptr ? *one : std::nullopt);
  for (const TimePoint until : duplicates_.deadlines()) take_owed(until);
  take_later(announcer_.due());
  const auto* over = in<Over>();
  const bool finished = over != nullptr && over->finished;
  if (!roster_.empty() && !finished) {
    const Agent* longest = roster_.longest_heard();
    if (longest != nullptr) take(longest->heard + terms().silence_max());
    // A stall is noticed by a timer that is late, so one is always near.
    if (!options_.single_node) take(now_ + terms().keep_alive_interval);
    if (unread_) take(now_);
  }
  if (next && armed_ && *armed_ > now_ && *armed_ <= *next) return;
  armed_ = next;
  if (next) out_.add(ArmTimer{*next});
}

bool Run::is_member(const Agent& agent) const {
  const LiveRound* round = live_round(state_);
  return round != nullptr && round->has(agent);
}

reasons::NodeLost Run::describe(const Agent& agent, const std::string& evidence) const {
  reasons::NodeLost node{agent.host(), "", evidence};
  if (is_member(agent)) {
    node.ranks = reasons::ranks_text(agent.placement.rank_base, agent.hello.local_world_size);
  }
  return node;
}

bool Run::starts_new_run(const Hello& hello, TimePoint now) const {
  const auto* over = in<Over>();
  return over != nullptr && !hello.claim && now - hello.age > over->ended.at;
}

std::optional<Ended> Run::success() const {
  if (may_be_late()) return options_.succeeded;
  const auto* over = in<Over>();
  if (over == nullptr || over->ended.verdict.exit_code != 0) return std::nullopt;
  return over->ended;
}

RunRecord Run::record() const {
  RunRecord before = agreement_.record().value_or(RunRecord{});
  // The verdict of a run stays until another one has its first round.
  if (before.over && !rounds_.formed()) return before;
  RunRecord record{std::max(rounds_.highest().value(), before.round), restarts_.used().value()};
  record.agreed = before.over ? std::nullopt : before.agreed;
  if (rounds_.formed() && agreement_.is_known()) record.agreed = agreed_on(agreement_.agreed());
  record.before = agreement_.ended();
  if (const auto* over = in<Over>()) {
    const Done& verdict = over->ended.verdict;
    record.over =
        RunRecord::Verdict{verdict.exit_code, verdict.text, over->ended.nodes, options_.term};
  }
  return record;
}

// What a node claims of rounds that it was not given here lets none wait for it.
std::vector<LeftOnNode> Run::left_of(Round ended) const {
  std::vector<LeftOnNode> all;
  for (const Agent* agent : roster_.by_silence()) {
    const bool was_in = agent->since > Round(0) && agent->since <= ended;
    all.push_back({agent->hello.agent, agent->host(), worker_addresses(agent->hello, agent->peer),
                   was_in && round::may_have(*agent, ended)});
  }
  return all;
}

bool Run::has_member(const AgentId& node) const {
  const Agent* agent = roster_.by_id(node);
  return agent != nullptr && is_member(*agent);
}

bool Run::may_have(const AgentId& node, Round ended) const {
  const Agent* agent = roster_.by_id(node);
  return agent != nullptr && round::may_have(*agent, ended);
}

Status Run::status(TimePoint now) const {
  Status status;
  status.run_id = options_.run_id;
  status.phase = phase();
  status.why = why_;
  status.round = rounds_.last();
  status.restarts = restarts_.used();
  status.counters = counters_;
  if (agreement_.is_known()) status.terms = terms();
  if (const auto* stopping = in<Stopping>()) status.verdict = stopping->verdict;
  if (const auto* over = in<Over>()) status.verdict = over->ended.verdict;
  for (const auto& [node, gone_at] : gone_) {
    status.gone.push_back(node);
    status.gone.back().ago = now - gone_at;
  }
  const auto* forming = in<Forming>();
  if (forming != nullptr && !roster_.empty() && !forming->restart_at) {
    const reasons::Absence absent = absence();
    status.missing = absent.missing;
    status.why = reasons::waiting(absent, terms());
  }
  if (in<Running>() != nullptr && roster_.silent() > 0) {
    status.why = reasons::silent_nodes_awaited(roster_.silent_hosts(), terms());
  }
  std::vector<const Agent*> agents(roster_.by_silence().begin(), roster_.by_silence().end());
  const auto place = [this](const Agent* agent) {
    return std::pair(is_member(*agent) ? agent->group_rank : 1 << 30, agent->arrival);
  };
  std::sort(agents.begin(), agents.end(),
            [&](const Agent* left, const Agent* right) { return place(left) < place(right); });
  for (const Agent* agent : agents) {
    NodeStatus node;
    node.host = agent->host();
    node.address = agent->peer.address;
    node.group_rank = is_member(*agent) ? agent->group_rank : -1;
    node.rank_base = agent->placement.rank_base;
    node.workers = agent->hello.local_world_size;
    node.state = agent->state;
    node.silent = now - agent->heard;
    node.version = agent->hello.version;
    status.nodes.push_back(std::move(node));
  }
  return status;
}

}  // namespace ddprun::round

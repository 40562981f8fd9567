// Run: decides the membership and the rounds of one run. Pure: no clock, socket, log or thread; the
// same events at the same times give the same actions. Owned by one coordinator shell, called on
// its thread only.
//
// The shell feeds every decoded frame, every lost connection and every expired timer to step() and
// carries out the returned actions in order; it decides nothing. Cost: O(1) per message, O(N) sends
// per round (and O(N log N) time to order N nodes); a wait is announced to all agents at most once
// a second.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.hpp"
#include "base/quota.hpp"
#include "base/signals.hpp"
#include "rendezvous/protocol/run_record.hpp"
#include "rendezvous/round/admission.hpp"
#include "rendezvous/round/authority.hpp"
#include "rendezvous/round/event.hpp"
#include "rendezvous/round/phases.hpp"
#include "rendezvous/round/reasons.hpp"
#include "rendezvous/round/restarts.hpp"
#include "rendezvous/round/rounds.hpp"
#include "rendezvous/round/status.hpp"

namespace ddprun::round {

/// A run without agents is kept so long at most, whatever its join_timeout.
inline constexpr Duration kAbandonedMax = std::chrono::hours(1);
// After the verdict agents get this long to take it and go.
inline constexpr Duration kLingerMax = std::chrono::seconds(30);
/// Nodes that have left or were lost and are still shown; of more, the newest.
inline constexpr std::size_t kGoneMax = 64;

// Signals that are passed on to all nodes: so many at once, then one per interval; others are
// dropped with a note.
inline constexpr int kSignalBurst = 32;
inline constexpr Duration kSignalInterval = std::chrono::milliseconds(100);

struct RunOptions {
  RunId run_id;
  std::string author;  // this coordinator process, different from every other one's
  /// Set if the last run of this name succeeded. Agents that join now start a new run of this name
  /// if at least as many join within last_call_timeout as the finished run had; otherwise they are
  /// late and exit 0.
  std::optional<Ended> succeeded = std::nullopt;
  /// The coordinator of one node, in that node's agent: sentences speak of no other node.
  bool single_node = false;
  /// Set if other coordinators follow this one: what the one before it left of the run.
  std::optional<RunRecord> record{};
  std::int64_t term = 0;  // in which it was elected; 0: it was not
  SuccessionOptions succession{};
  /// The origin of a run that begins here: members of its rounds are known by it. Empty: author.
  std::string origin{};
  /// The coordinator before this one had a round of this run, and its author had the same lineage:
  /// that shows who is a member of the run before this one has a round.
  bool knows_members = false;
};

struct LeftOnNode {
  AgentId node;
  std::string host;
  std::vector<std::string> addresses;
  bool may_have = false;
};

class Run {
 public:
  explicit Run(RunOptions options);

  /// Takes one event; returns what to do, in order. `now` is a monotonic clock; a step back is
  /// ignored.
  [[nodiscard]] Actions step(const Event& event, TimePoint now);

  [[nodiscard]] Status status(TimePoint now) const;
  /// Whether the verdict is known (Finish may still follow).
  [[nodiscard]] bool over() const { return in<Over>() != nullptr; }
  [[nodiscard]] Phase phase() const { return static_cast<Phase>(state_.index()); }
  /// Whether another coordinator of the run has its nodes. One whose majority is here cannot have
  /// been replaced; of two runs that began apart one yields. Who has no secret (`is_proven`) has to
  /// show what may_lead() asks for.
  [[nodiscard]] bool yields_to(const protocol::Lead& lead, bool is_proven) const;
  /// Whether who says so may lead a run that began while this one was not heard (docs/FAILOVER.md).
  [[nodiscard]] bool may_be_rival(const protocol::Lead& lead, bool is_proven) const;
  [[nodiscard]] const Rounds& rounds() const { return rounds_; }
  [[nodiscard]] const Authority& authority() const { return authority_; }
  [[nodiscard]] bool has_agents() const { return !roster_.empty(); }
  /// For each node: the addresses of its workers, and whether some of round `ended` may be left.
  [[nodiscard]] std::vector<LeftOnNode> left_of(Round ended) const;
  /// The latter of one node. A node that is not in the run has none.
  [[nodiscard]] bool may_have(const AgentId& node, Round ended) const;
  /// Whether this node is in the round that lives.
  [[nodiscard]] bool has_member(const AgentId& node) const;
  /// Members of a round have come from another coordinator, and may be a majority soon.
  [[nodiscard]] bool gathers_majority() const { return authority_.is_candidate() && has_agents(); }
  /// All agents have left, and none of them knew of a round.
  [[nodiscard]] bool is_unused() const;
  /// For a run that is over: whether this agent process started after the end, so that it asks for
  /// a new run of the same name and not for this one. Ages are compared, never two machines'
  /// clocks.
  [[nodiscard]] bool starts_new_run(const protocol::Hello& hello, TimePoint now) const;
  /// Whether an agent runs another program than this run did: it is not late for it.
  [[nodiscard]] bool runs_other_command(const protocol::Hello& hello) const {
    return agreement_.is_known() && has_other_command(hello, agreement_.agreed());
  }
  /// Whether a round lives of which all ranks have exited with 0, if these reports say so too.
  [[nodiscard]] bool succeeds_with(const std::vector<Received>& reports) const;
  /// The success of this run, or of the one before if no agents started it again.
  [[nodiscard]] std::optional<Ended> success() const;
  /// What a coordinator after this one has to know, also if no agent is left.
  [[nodiscard]] RunRecord record() const;

 private:
  /// The last node that was refused, for those that wait for one more.
  struct RefusedNode {
    std::string host;
    std::string text;  // behind what is awaited
  };
  /// A node without ranks to stop, whose leave waits for the answers of the others.
  struct Leaver {
    AgentId agent;
    bool asked = false;  // the members were asked after its leave
  };
  /// What the next round has and waits for.
  struct Wanted {
    int nodes = 0;
    Duration wait{};
  };
  /// Those of the next round, and behind them those that wait.
  struct NextRound {
    std::vector<Agent*> order;
    std::ptrdiff_t members = 0;
  };
  enum class LinkEnd { kOpen, kGone };

  // run.cpp: events, time.
  void on(const Received& received);
  void on(const LinksLost& lost);
  void on(const LinkLost& lost);
  void on(const Tick& tick);
  void on(const Shutdown& shutdown);
  void extend_deadlines_after_stall();
  void settle();
  void arm();
  [[nodiscard]] bool is_due(const Deadline& deadline) const {
    return ticked_ && deadline && now_ >= *deadline;
  }
  /// The state of the phase that the run is in; null if it is in another one.
  template <class State>
  [[nodiscard]] State* in() {
    return std::get_if<State>(&state_);
  }
  template <class State>
  [[nodiscard]] const State* in() const {
    return std::get_if<State>(&state_);
  }
  /// Leaves the phase that the run is in: its state is gone.
  template <class State>
  State& enter(State state) {
    authority_.end_round();
    return state_.emplace<State>(std::move(state));
  }
  [[nodiscard]] const protocol::Terms& terms() const { return agreement_.agreed().terms; }
  [[nodiscard]] bool is_member(const Agent& agent) const;
  [[nodiscard]] reasons::NodeLost describe(const Agent& agent, const std::string& evidence) const;

  // A message of an agent that has said hello. One without take() is not for a coordinator.
  void take(Agent& agent, const protocol::Reconnecting& reconnecting);
  void take(Agent& agent, const protocol::Report& report);
  void take(Agent& agent, const protocol::Stopped& stopped);
  void take(Agent& agent, const protocol::Quiet& quiet);
  void take(Agent& agent, const protocol::Beat& beat);
  void take(Agent& agent, const protocol::PassSignal& passed);
  void take(Agent& agent, const protocol::Leave& leave);

  // run_join.cpp: hello.
  void on_hello(const Received& received, const protocol::Hello& hello);
  [[nodiscard]] std::optional<protocol::Refused> refusal_of(const protocol::Hello& hello) const;
  void refuse(const Received& received, const protocol::Hello& hello,
              const protocol::Refused& refused);
  [[nodiscard]] bool is_first_of_new_run(const protocol::Hello& hello) const;
  void begin_new_run(const protocol::Hello& hello);
  void admit(const Received& received, const protocol::Hello& hello);
  void take_back(Agent& agent, const Received& received, const protocol::Hello& hello);
  void resume_member(Agent& agent, const protocol::Hello& hello);
  bool take_duplicate(Agent& agent);
  void greet(Agent& agent);
  [[nodiscard]] std::optional<protocol::Waiting> greeting(const Agent& agent) const;

  // run_rebuilding.cpp: rounds of other coordinators.
  void weigh_claim(Agent& agent, const protocol::Claim& claim);
  void take_claim(Agent& agent, const protocol::Claim& claim);
  void continue_from(const protocol::RoundStamp& stamp, const ClaimedPlaces& places);
  void disown_strangers();
  void stop_strays();
  void settle(Rebuilding& rebuilding);
  void adopt(const ClaimedPlaces& places);
  [[nodiscard]] bool awaits_claimed(Rebuilding& rebuilding);
  [[nodiscard]] bool settle_claims(Rebuilding& rebuilding);
  void follow(const ClaimedRound& claimed, bool was_awaited);
  void take_up(const ClaimedRound& claimed);
  [[nodiscard]] bool may_speak(const protocol::Lead& lead, bool is_proven) const;

  // run_forming.cpp: the wait for agents, and the start of a round.
  void end_round(std::string why, Deadline restart_at = {});
  void settle(Forming& forming);
  void give_up_forming();
  [[nodiscard]] bool may_be_late() const;
  [[nodiscard]] Wanted wanted() const;
  void start_or_await(Forming& forming);
  [[nodiscard]] NextRound next_round() const;
  void start_round(const NextRound& next_round);
  void announce_if_due();
  [[nodiscard]] reasons::Absence absence() const;
  [[nodiscard]] protocol::Waiting waiting(std::string text, Deadline until = {}) const;

  // run_running.cpp: what the agents report of a round.
  void settle(Running& running);
  void count_answer(Agent& agent);
  void on_failure(const Agent& agent);
  [[nodiscard]] bool completes_interrupted(const Agent& agent, const protocol::Report& report);
  void check_success();
  void forget_quiet(const Agent& agent);

  // run_leave.cpp: agents that leave, are lost or silent.
  [[nodiscard]] bool may_end_run(const Agent& agent) const;
  [[nodiscard]] bool others_may_vote(const Agent& own) const;
  void take_up_leaves();
  void take_up(Agent& agent, const protocol::Leave& leave);
  void resign(const Agent& own, const std::string& why);
  void drop(Agent& agent, Round unanswered);
  void lose_silent(Agent& agent);
  void lose(Agent& agent, const std::string& evidence, LinkEnd link_end);
  void after_loss(bool ends, const std::string& sentence);
  void remember(const Agent& agent, const std::string& why);
  void forget(Agent& agent);
  void settle_silent();
  [[nodiscard]] bool must_await_silent(const Running& running) const;
  void come_back(Agent& agent);

  // run_end.cpp: the verdict.
  void finish(protocol::Done verdict);
  void finish_failed(NoRestart no_restart, TimePoint heard_at);
  void stop(Stopping stopping);
  void send_stop(Agent& agent, const std::string& reason);
  void settle(Stopping& stopping);
  void late_hello(const Over& over, const Received& received, const protocol::Hello& hello);

  RunOptions options_;
  Agreement agreement_;
  Roster roster_;
  PhaseState state_;
  Rounds rounds_;
  Authority authority_;
  Restarts restarts_;
  Announcer announcer_;
  std::string why_;  // of the current phase, for people
  RefusedNode refused_;
  // Reconnected with workers of a round that is not the live one, in order of arrival.
  std::map<std::uint64_t, Agent*> strays_;
  bool resigned_ = false;             // what comes from now on is for another coordinator
  std::optional<AgentId> resigning_;  // beside this coordinator, which waits to be followed
  std::deque<Leaver> leavers_;        // whose leave may follow the success of the round
  JoinPace join_pace_;
  DuplicateHellos duplicates_;
  SignalMerge<AgentId> signals_;
  LogQuota signal_quota_{kSignalBurst, kSignalInterval};
  Counters counters_;
  std::deque<std::pair<GoneNode, TimePoint>> gone_;
  bool unread_ = false;  // after a stall, until a Tick: not all that came meanwhile has been read

  // Of one step.
  TimePoint now_;
  bool ticked_ = false;  // its event is a Tick
  int losing_ = 0;       // agents that it will have lost too
  Outbox out_;
  Deadline armed_;  // the last ArmTimer
};

}  // namespace ddprun::round

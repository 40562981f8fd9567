// Run: decides the membership and the rounds of one run. Pure: no clock, socket, log or thread; the
// same events at the same times give the same actions. Owned by one coordinator shell, called on
// its thread only.
//
// The shell feeds every decoded frame, every lost connection and every expired timer to step() and
// carries out the returned actions in order; it decides nothing. Cost: O(1) per message, O(N) sends
// per round (and O(N log N) time to order N nodes); a wait is announced to everybody at most once a
// second.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/restart_pace.hpp"
#include "rendezvous/round/admission.hpp"
#include "rendezvous/round/event.hpp"
#include "rendezvous/round/reasons.hpp"
#include "rendezvous/round/roster.hpp"
#include "rendezvous/round/status.hpp"

namespace ddprun::round {

// An agent answers a round at once, before it stops or starts anything; one that takes longer is
// broken.
inline constexpr Duration kAnswerMax = std::chrono::seconds(10);
// Added to the longest --shutdown-timeout while the workers of a failed run end.
inline constexpr Duration kStopMargin = std::chrono::seconds(5);
// After the verdict agents get this long to take it and go.
inline constexpr Duration kLingerMax = std::chrono::seconds(30);
// Between two announcements of a wait to everybody.
inline constexpr Duration kAnnounceInterval = std::chrono::seconds(1);

/// How a run ended that had the same name.
struct Ended {
  protocol::Done verdict;
  TimePoint at;
  int nodes;  // of its last round
};

struct RunOptions {
  RunId run_id;
  std::string author;  // this coordinator process, different from every other one's
  /// Set if the last run of this name succeeded. Agents that come now mean to begin it anew if as
  /// many of them come within the last call as it had; otherwise they are late for that one.
  std::optional<Ended> succeeded = std::nullopt;
  /// The coordinator of one node, in that node's agent: sentences speak of no other node.
  bool single_node = false;
};

class Run {
 public:
  explicit Run(RunOptions options);

  /// Takes one event; returns what to do, in order. `now` is a monotonic clock; a step back is
  /// ignored.
  [[nodiscard]] Actions step(const Event& event, TimePoint now);

  [[nodiscard]] Status status(TimePoint now) const;
  /// Whether the verdict is known (its Finish may still be to come).
  [[nodiscard]] bool over() const { return phase_ == Phase::kOver; }
  /// For a run that is over: whether this agent process started after the end, so that it means a
  /// new run of the same name and not this one. Ages are compared, never two machines' clocks.
  [[nodiscard]] bool starts_new_run(const protocol::Hello& hello, TimePoint now) const;
  /// Whether an agent means another program than this run had: it is not late for it.
  [[nodiscard]] bool runs_other_command(const protocol::Hello& hello) const {
    return run_terms_ && refuse_command(hello, *run_terms_).has_value();
  }
  /// The success of this run, or of the one before if nobody began it anew.
  [[nodiscard]] std::optional<Ended> success() const;

 private:
  /// A worker's first failure on one node, on the coordinator's clock.
  struct Failure {
    TimePoint at;
    std::string host;
    AgentId agent;
    protocol::WorkerExit exit;
    Round round{0};
  };

  // run.cpp: events, time, sending.
  void on(const Received& received);
  void on(const LinkLost& lost);
  void on(const Tick& tick);
  void on(const Shutdown& shutdown);
  void extend_deadlines_after_stall();
  [[nodiscard]] bool is_due(const std::optional<TimePoint>& deadline) const {
    return ticked_ && now_ >= *deadline;
  }
  void settle();
  void arm();
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;
  void send(LinkId link, protocol::Message message);
  void close(LinkId link);
  void note(Level level, std::string text);
  void announce_if_due();

  // run_join.cpp: coming.
  void on_hello(const Received& received, const protocol::Hello& hello);
  [[nodiscard]] std::optional<protocol::Refused> refusal_of(const protocol::Hello& hello) const;
  [[nodiscard]] bool is_first_of_new_run(const protocol::Hello& hello) const;
  void late_hello(LinkId link, const protocol::Hello& hello);
  void admit(const Received& received, const protocol::Hello& hello);
  void resume(Agent& agent, const Received& received, const protocol::Hello& hello);
  void resume_member(Agent& agent, const protocol::Hello& hello);
  void take_claim(Agent& agent, const protocol::Claim& claim);
  void claim_place(Agent& agent, const protocol::Claim& claim);
  void settle_rebuilding();
  void adopt_claimed_round();
  void stop_strays();
  void begin_rebuilding(Round heard_of);
  void greet(const Agent& agent);

  // run_rounds.cpp: rounds.
  void settle_forming();
  void give_up_forming();
  [[nodiscard]] bool everybody_here_succeeded() const;
  [[nodiscard]] bool last_call_holds();
  [[nodiscard]] Duration join_wait() const;
  [[nodiscard]] int nodes_needed() const;
  [[nodiscard]] bool may_be_late() const { return options_.succeeded && !formed_; }
  void settle_running();
  void start_or_await();
  [[nodiscard]] std::vector<Agent*> next_order() const;
  void start_round(const std::vector<Agent*>& order);
  void place(Agent& agent, const Placement& placement);
  [[nodiscard]] protocol::StartRound start_message(const Agent& agent) const;
  [[nodiscard]] std::string master_address_for(const Agent& agent) const;
  void end_round(std::string why);
  void stop_survivors();
  void drop_unanswering();

  // run_end.cpp: reports, going, the end.
  void on_report(Agent& agent, const protocol::Report& report);
  void on_failure(Agent& agent);
  void on_stopped(Agent& agent, const protocol::Stopped& stopped);
  void on_leave(Agent& agent, const protocol::Leave& leave);
  void let_go(Agent& agent);
  void let_leavers_go();
  [[nodiscard]] bool failure_explains(const Agent& agent, const protocol::Leave& leave) const;
  enum class LinkEnd { kOpen, kGone };
  void lose(Agent& agent, const std::string& evidence, LinkEnd link_end);
  enum class RoundEnd { kGoesOn, kEnds };
  [[nodiscard]] RoundEnd round_end_without(const Agent& agent) const;
  [[nodiscard]] bool explains_failure(const Agent& agent) const;
  void after_loss(RoundEnd end, const std::string& sentence);
  void forget(Agent& agent);
  void check_success();
  void finish(protocol::Done verdict);
  void finish_failed(const std::string& why_no_restart);
  void conclude();
  void choose_first_failure();
  void set_failure(const Failure& failure);
  [[nodiscard]] std::string reporter() const;
  [[nodiscard]] reasons::NodeLost describe(const Agent& agent, const std::string& evidence) const;
  [[nodiscard]] reasons::Absence absence() const;
  void send_stop(Agent& agent, const std::string& reason);

  [[nodiscard]] bool is_member(const Agent& agent) const;
  [[nodiscard]] bool round_lives() const {
    return phase_ == Phase::kRunning || phase_ == Phase::kStopping;
  }
  [[nodiscard]] const protocol::Terms& terms() const { return run_terms_->terms; }
  [[nodiscard]] int unplaced() const { return roster_.size() - members_here_; }

  RunOptions options_;
  std::optional<RunTerms> run_terms_;
  Roster roster_;
  Phase phase_ = Phase::kForming;
  TimePoint now_;
  bool ticked_ = false;  // this step's event is a Tick
  Actions actions_;
  Counters counters_;
  std::string why_;  // of the current state, for people

  protocol::RoundStamp last_;    // the last round that was formed or adopted
  int highest_ = 0;              // the highest round number ever heard of
  bool formed_ = false;          // whether this run has had a round
  std::vector<Agent*> members_;  // of last_ by group rank; null: finished and gone
  int members_here_ = 0;
  int unanswered_ = 0;  // members that have not taken on the round
  int succeeded_ = 0;
  int world_size_ = 0;
  std::uint16_t master_port_ = 0;   // of the live round's store
  RestartCount round_restarts_{0};  // as the live round was told; a claim may raise restarts_ later
  std::string round_reason_;
  std::string shared_address_;   // of the coordinator's machine, as the first remote member sees it
  bool others_unknown_ = false;  // last_ was another coordinator's, and some of its nodes are away
  bool survivors_told_ = true;   // whether the ended round's agents know that they must stop
  RestartCount restarts_{0};
  std::vector<Failure> failures_;  // of the live round
  RestartPace pace_;
  Duration restart_delay_{0};  // of the last restart
  TimePoint running_since_;    // of the live round: when the last node said so
  // The failure that the last restart answers, until all workers of the new round run: a stop of
  // the run in between ends it with this failure.
  std::optional<Failure> answered_failure_;
  Agent* awaited_ = nullptr;     // the next rank 0, whose store is not open yet
  std::vector<AgentId> strays_;  // said hello with workers of a round that is not the live one

  protocol::RoundStamp claimed_;  // the round being rebuilt
  std::vector<Agent*> claims_;    // by group rank
  int claims_missing_ = 0;

  std::optional<protocol::Done> verdict_;
  AgentId failed_agent_;  // where the verdict's failure was
  TimePoint failed_at_;  // when it was heard of; long ago if a lost node cannot have been its cause
  TimePoint over_at_;
  bool finished_ = false;

  std::optional<TimePoint> join_deadline_;
  std::optional<TimePoint> last_call_;
  std::optional<TimePoint> restart_at_;  // not sooner, after quick failures
  std::optional<TimePoint> rebuild_deadline_;
  std::optional<TimePoint> answer_deadline_;
  std::optional<TimePoint> stop_deadline_;
  std::optional<TimePoint> linger_deadline_;
  std::optional<TimePoint> announce_at_;
  TimePoint announced_at_{};
  std::optional<TimePoint> armed_;
};

}  // namespace ddprun::round

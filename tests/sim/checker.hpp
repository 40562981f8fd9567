// What must hold at every step of every simulated run; throws Violation with a sentence when it
// does not. It sees what the coordinator sends, what agents do and what the world does to them,
// never what they think.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "rendezvous/client/membership.hpp"
#include "rendezvous/round/run.hpp"

namespace ddprun::sim {

struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void require(bool holds, const std::string& sentence);

/// The promises of a run (checker_promises.cpp), by the name that a violation is told with.
namespace promise {
inline constexpr std::string_view kSuccessStays = "success stays";
inline constexpr std::string_view kNoHealthyNodeLost = "no healthy node is lost";
inline constexpr std::string_view kStoreStaysOpen = "the store stays open";
inline constexpr std::string_view kLeftIsTrue = "what is said of workers is true";
inline constexpr std::string_view kVerdictStays = "a verdict stays";
inline constexpr std::string_view kOneCommand = "one command";
inline constexpr std::string_view kSilenceIsBorne = "silence below MIN stops no rank";
}  // namespace promise

/// What today's code is known to break: counted, not thrown.
inline constexpr std::array<std::string_view, 0> kKnownViolations{};

using Stamp = std::pair<int, std::string>;  // round number, author

[[nodiscard]] Stamp key_of(const protocol::RoundStamp& stamp);

class Checker {
 public:
  Checker(protocol::Terms terms, Duration stop_grace)
      : terms_(std::move(terms)), stop_grace_(stop_grace) {}
  /// A violation of this promise ends the life, known or not; "all": every one's does.
  void be_strict(const std::string& promise) { strict_ = promise; }

  /// Any node may coordinate: what a round has to do with those before it is not checked here, and
  /// a node whose coordinator is lost for good knows of itself alone.
  void expect_several_coordinators() { several_ = coordinator_lost_ = true; }

  /// All StartRounds of one coordinator step, with the agent process each went to.
  struct Sent {
    int process;  // unique per agent process
    int workers;
    std::string role;
    std::string fingerprint;
    protocol::StartRound start;
  };
  void on_rounds(const std::vector<Sent>& sent, TimePoint now);
  void on_message(const protocol::Message& message) const;
  void on_failure_charged(int before, int after) const;

  /// The coordinator gave this process up, or heard its connection end.
  void on_process_lost(int process) { lost_.insert(process); }
  /// What an agent told the coordinator of the budget: a new coordinator cannot know better.
  void on_claim(RestartCount restarts) { claimed_ = std::max(claimed_, restarts.value()); }
  void on_told(int process, const protocol::StartRound& start);
  [[nodiscard]] const protocol::StartRound& told(int process) const { return told_.at(process); }
  void on_group_started(int process, const protocol::StartRound& start);
  void on_group_failed(const protocol::RoundStamp& stamp);
  /// The agent of a node ended its workers, since a place could not be taken again.
  void on_group_given_up(const protocol::RoundStamp& stamp);
  void on_group_succeeded(int process, Round round);
  /// All workers of a process ended with 0 in a round that another one has replaced.
  void on_finished_before(int process, Round round, int workers);
  void on_group_gone(int process);
  /// The coordinator learns that the workers of this agent ended with 0.
  void on_success_read(int process) { successes_read_.insert(process); }
  void on_agent_gone(int process);
  void on_agent_ended(int process, const client::End& end);

  // What the world does, checker_promises.cpp.
  /// Until then (and a little longer) this process may rightly be taken for lost.
  void excuse(int process, TimePoint until);
  /// The same of one that stands still until then, and is what it was afterwards.
  void on_suspended(int process, TimePoint until);
  void on_coordinator_paused(TimePoint now, TimePoint until);
  /// Until then nothing can reach it.
  void on_coordinator_frozen(TimePoint until) { unheard_until_ = until; }
  /// The run of the current coordinator is ending, so its verdict is known.
  void on_verdict_known(TimePoint now);
  /// The run continues: the failure came of a node that was lost.
  void on_verdict_taken_back();
  /// What it had decided and not told all agents, the next one cannot know.
  void on_coordinator_lost();
  /// `coordinator`: which of those that followed each other.
  void on_verdict_told(int coordinator, const protocol::Done& done);
  enum class Coordinated { kYes, kNo };  // whether a coordinator answers this agent now
  void on_signalled(int process, Coordinated coordinated, TimePoint now);
  void on_leaving(int process, Coordinated coordinated);
  /// A worker ended by itself with 0, in the round that it took last.
  void on_rank_finished(int process, const Stamp& stamp) { ++finished_[{process, stamp}]; }
  /// The same, and nothing but a node that joins had ended the round.
  void on_rank_done(int process, const Stamp& stamp, TimePoint now);
  enum class Then { kEnds, kReleased };  // kReleased: all of them live, or have finished
  /// Workers of this round are being stopped, or released to the next one, on some node.
  void on_stopping(const protocol::RoundStamp& stamp, Then then, TimePoint now);
  /// Its agent has no use for it; clients on other nodes may have.
  void on_store_released(int process, const protocol::RoundStamp& stamp, TimePoint now);
  /// A reachable node with workers of a round, when its store is closed.
  struct StoreClient {
    std::string host;
    std::optional<TimePoint> told_to_end;  // its workers; none: they work
  };
  /// The run knows of no worker on a node that is of `round` or of one before.
  void on_left(Round round, bool none_lives);
  void on_store_closed(const protocol::RoundStamp& stamp, const StoreClient& client, TimePoint now);
  /// Nothing happened that an agent should have noticed.
  void on_undisturbed_end();
  [[nodiscard]] const std::map<std::string_view, int>& known_violations() const { return known_; }
  /// Some round's ranks have all exited 0: the run has succeeded, whatever happens now.
  [[nodiscard]] bool succeeded() const { return succeeded_.has_value(); }

  [[nodiscard]] int rounds() const { return static_cast<int>(rounds_.size()); }
  [[nodiscard]] int restarts() const;
  /// Of workers, and of groups whose ranks were given up.
  [[nodiscard]] int failures() const { return failures_; }
  [[nodiscard]] int largest_restart_step() const { return largest_restart_step_; }
  [[nodiscard]] const std::map<int, int>& exit_codes() const { return exit_codes_; }

 private:
  using Member = Sent;
  struct Formed {
    TimePoint at{};
    std::vector<Member> members;  // by group rank
    std::set<int> processes;      // of the members
    std::set<int> told;           // processes
    std::set<int> succeeded;      // processes
    bool failed = false;          // on some node
    bool given_up = false;
    bool ends = false;  // on some node, and not only for the next one
    int ranks_done = 0;
    std::optional<TimePoint> stopping;
    std::optional<TimePoint> released;  // the store
    [[nodiscard]] bool has(int process) const { return processes.count(process) != 0; }
  };
  void note_rounds(const std::vector<Sent>& sent);
  void check_complete(Formed& formed) const;
  void check_order(const Formed& before, const Formed& after) const;
  void check_number(const Stamp& stamp, const Formed& formed);
  void check_cause(const Formed& before, const Formed& after);
  [[nodiscard]] bool lives(const Stamp& stamp) const;
  void forget_success_without(const Formed& after);
  void promised(std::string_view name, bool holds, const std::string& sentence);
  [[nodiscard]] bool has_lost_member(const Formed& formed) const;
  [[nodiscard]] bool excused(int process, TimePoint now) const;
  [[nodiscard]] bool anybody_excused_since(TimePoint when) const;
  void extend_excuse(int process, TimePoint until);
  void check_silence(const Formed& before, const Formed& after);

  protocol::Terms terms_;
  Duration stop_grace_;
  std::map<Stamp, Formed> rounds_;
  std::map<std::string, Stamp> last_by_author_;
  std::set<std::string> began_anew_;  // authors whose first round had no node of a round before
  std::map<int, protocol::StartRound> told_;     // the newest round each process was told
  std::map<int, protocol::StartRound> running_;  // the group each process has
  std::map<int, int> exit_codes_;
  std::set<int> lost_;  // since the last round: their old place means nothing
  int claimed_ = 0;
  int failed_rounds_ = 0;
  int failures_ = 0;
  bool several_ = false;
  std::map<int, int> verdicts_;  // exit code, by coordinator
  int largest_restart_step_ = 0;

  std::map<int, TimePoint> excuses_;  // per process
  bool only_suspended_ = true;        // nothing else has befallen any agent
  TimePoint unread_until_{};          // by the coordinator, whose process is paused
  TimePoint unheard_until_{};         // by the coordinator, whose machine stands still
  std::set<int> leaving_;             // processes
  std::set<int> gone_;                // processes that are, or are going
  std::optional<Stamp> newest_;       // the round that was formed last, by whatever coordinator
  std::optional<Stamp> succeeded_;
  std::optional<TimePoint> verdict_known_;
  std::optional<Stamp> judged_;                    // the round that was the newest then
  std::map<std::pair<int, Stamp>, int> finished_;  // ranks of a process, in a round
  std::set<int> successes_read_;                   // processes
  bool coordinator_lost_ = false;
  bool went_unheard_ = false;               // an agent was told to go while no coordinator answered
  std::optional<TimePoint> failure_known_;  // the same, if a worker's failure is the verdict
  std::map<int, TimePoint> signalled_;      // processes; the first signal
  std::set<int> hurried_;                   // processes that got a second one
  std::map<std::string_view, int> known_;
  std::string strict_;
};

}  // namespace ddprun::sim

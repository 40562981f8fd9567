// What must hold at every step of every simulated run; throws Violation with a sentence when it
// does not. It sees what the coordinator sends and what agents do, never what they think.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/client/membership.hpp"
#include "rendezvous/round/run.hpp"

namespace ddprun::sim {

struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void require(bool holds, const std::string& sentence);

using Stamp = std::pair<int, std::string>;  // round number, author

[[nodiscard]] Stamp key_of(const protocol::RoundStamp& stamp);

class Checker {
 public:
  explicit Checker(protocol::Terms terms) : terms_(std::move(terms)) {}

  /// All StartRounds of one coordinator step, with the agent process each went to.
  struct Sent {
    int process;  // unique per agent process
    int workers;
    std::string role;
    protocol::StartRound start;
  };
  void on_rounds(const std::vector<Sent>& sent);
  void on_message(const protocol::Message& message) const;
  void on_failure_charged(int before, int after) const;

  /// The coordinator gave this process up, or heard its connection end.
  void on_process_lost(int process) { lost_.insert(process); }
  /// What an agent told the coordinator of the budget: a new coordinator cannot know better.
  void on_claim(RestartCount restarts) { claimed_ = std::max(claimed_, restarts.value()); }
  void on_told(int process, const protocol::StartRound& start);
  void on_group_started(int process, const protocol::StartRound& start);
  void on_group_failed(const protocol::RoundStamp& stamp);
  void on_group_succeeded(int process, Round round);
  void on_group_gone(int process);
  void on_agent_gone(int process);
  void on_agent_ended(int process, const client::End& end);

  [[nodiscard]] int rounds() const { return static_cast<int>(rounds_.size()); }
  [[nodiscard]] int restarts() const;
  [[nodiscard]] int largest_restart_step() const { return largest_restart_step_; }
  [[nodiscard]] const std::map<int, int>& exit_codes() const { return exit_codes_; }

 private:
  struct Member {
    int process;
    int workers;
    std::string role;
    protocol::StartRound start;
  };
  struct Formed {
    std::vector<Member> members;  // by group rank
    std::set<int> succeeded;      // processes
    bool failed = false;          // on some node
  };
  void check_complete(const Formed& formed) const;
  void check_order(const Formed& before, const Formed& after) const;
  void check_number(const Stamp& stamp, const Formed& formed);

  protocol::Terms terms_;
  std::map<Stamp, Formed> rounds_;
  std::map<std::string, Stamp> last_by_author_;
  std::map<int, protocol::StartRound> told_;     // the newest round each process was told
  std::map<int, protocol::StartRound> running_;  // the group each process has
  std::map<int, int> exit_codes_;
  std::set<int> lost_;  // since the last round: their old place means nothing
  int claimed_ = 0;
  int failed_rounds_ = 0;
  std::optional<int> verdict_;
  int largest_restart_step_ = 0;
};

}  // namespace ddprun::sim

// run_events: the events of events.jsonl, made from what the agent learns: messages of the
// coordinator, the workers of a round, the end. Pure conversions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "agent/events/event.hpp"
#include "agent/node/local_round_events.hpp"
#include "agent/watch/timer_table.hpp"
#include "rendezvous/client/membership.hpp"

namespace ddprun {

[[nodiscard]] RunEvent start_event(const LaunchConfig& config, int pid);

/// What the link brings, without what is repeated: heartbeats, attempts to connect, a round that
/// was known.
class LinkEvents {
 public:
  [[nodiscard]] std::vector<RunEvent> of(const client::Event& event);
  [[nodiscard]] Round round() const { return round_; }

 private:
  [[nodiscard]] std::optional<RunEvent> one_of(const client::Event& event);
  [[nodiscard]] std::optional<RunEvent> of(const protocol::Waiting& waiting);
  [[nodiscard]] std::optional<RunEvent> of(const protocol::StartRound& start);
  [[nodiscard]] const char* cause_of(const protocol::StartRound& start) const;

  bool is_up_ = false;
  std::string waiting_;
  Round round_{0};
  int nodes_ = 0;  // of that round
  RestartCount restarts_{0};
};

[[nodiscard]] RunEvent worker_started_event(Round round, const WorkerName& worker);
/// It runs since an earlier round, and was told of this one.
[[nodiscard]] RunEvent worker_kept_event(Round round, const WorkerName& worker);
/// One that waited for a place got that of a lost rank.
[[nodiscard]] RunEvent spare_used_event(Round round, const WorkerName& worker, int spare);
/// `name`: spare_ready, spare_ended.
[[nodiscard]] RunEvent spare_event(const char* name, int spare, int pid);
/// It has taken the round.
[[nodiscard]] RunEvent worker_joined_event(Round round, const WorkerName& worker);
/// All that were kept have taken the round, the others were started again.
[[nodiscard]] RunEvent recovered_event(Round round, const Recovery& recovery, Duration took);
/// `sent`: the first signal that ddprun had sent it, 0 for none; `exiting`: it is not gone yet.
[[nodiscard]] RunEvent worker_exited_event(Round round, const WorkerName& worker,
                                           const ExitStatus& status, int sent, bool exiting);
[[nodiscard]] RunEvent first_failure_event(Round round, const WorkerExit& first);
[[nodiscard]] RunEvent spawn_failed_event(Round round, LocalRank rank, const std::string& text);
[[nodiscard]] RunEvent stop_event(Round round, const char* name, int signal, int workers);
/// ddprun ends a round that hangs, or whose ranks do not finish.
[[nodiscard]] RunEvent give_up_event(Round round, const GiveUp& order);
/// What was ended with the round: none where its workers left nothing and none was stopped.
[[nodiscard]] std::optional<RunEvent> cleanup_event(Round round, const RoundResult& result);
/// What workers report over their links.
[[nodiscard]] RunEvent ready_event(Round round, Rank rank);
[[nodiscard]] RunEvent checkpoint_event(Round round, Rank rank, std::int64_t step,
                                        const std::string& path);
[[nodiscard]] RunEvent section_event(Round round, Rank rank, const std::string& name,
                                     Duration lasts, Duration limit);
[[nodiscard]] RunEvent timer_event(Round round, Rank rank, const WorkerTimer& timer);
/// A script starts workers of its own: see own_workers_text().
[[nodiscard]] RunEvent own_workers_event(Round round, const std::string& text);
/// What ranks finished together: from the first step that all of them have done to the last one.
struct StepSpan {
  std::int64_t first = 0;
  std::int64_t last = 0;
  Duration first_ago{};
  Duration last_ago{};
  int ranks = 0;  // that report steps
};
[[nodiscard]] StepSpan common(const StepSpan& one, const StepSpan& other);
[[nodiscard]] RunEvent steps_event(Round round, const StepSpan& steps);
[[nodiscard]] RunEvent round_ended_event(Round round, const RoundResult& result);

/// How the wait for GPUs ended, before round `next`: released, held or no_answer.
[[nodiscard]] RunEvent gpu_release_event(Round next, const char* state, Duration waited,
                                         const std::string& text);

/// A signal to ddprun: `action` is "stop" or "pass_on"; `from`: its sender, if that is known.
[[nodiscard]] RunEvent signal_event(int signal, const char* action, const std::string& from = "");
/// What the run came to, on this node.
struct RunEnd {
  int exit_code = 0;
  int stop_signal = 0;  // of a stop that ended it; 0: none
  std::string text{};
  std::optional<RunFailure> failure{};
  Round rounds{0};  // the last one
  RestartCount restarts{0};
  int workers = 1;  // of this node
  Duration took{};
  WallTime ended{};
  std::string log_dir{};  // empty: none
  bool coordinator = false;
  Duration longest_turn{};  // of the event loop (net/loop_turns.hpp)
};
[[nodiscard]] RunEvent end_event(const RunEnd& end);
/// A turn of the event loop took longer than kLongTurn, and than all before.
[[nodiscard]] RunEvent slow_turn_event(Duration took, Duration cpu);
/// result.json.
[[nodiscard]] std::string result_text(const RunEnd& end, const RunId& run, const std::string& host);

}  // namespace ddprun

// The sentences of a run: every verdict's reason is made here and printed unchanged by the log, the
// status page and the report. Pure functions. A sentence names who, where, why and, where there is
// something to try, the option that changes it.
#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace ddprun::round::reasons {

/// "rank 3", "ranks 8-15".
[[nodiscard]] std::string ranks_text(Rank base, int count);
/// "1 node", "3 nodes".
[[nodiscard]] std::string nodes_text(int count);

/// Why the first round starts.
[[nodiscard]] std::string all_here(int nodes);
[[nodiscard]] std::string last_call_over(int nodes, const protocol::Terms& terms);

/// What remains without a node: "7 nodes remain (minimum 4)".
[[nodiscard]] std::string remain(int nodes, const protocol::Terms& terms);

struct NodeLost {
  std::string host;
  std::string ranks;     // "" for a node without a place in the round
  std::string evidence;  // "connection closed", "agent got SIGTERM"
};
/// "lost gpu-07 (ranks 48-55): connection closed".
[[nodiscard]] std::string lost(const NodeLost& node);
/// "gpu-07 (ranks 48-55) left: agent got SIGTERM".
[[nodiscard]] std::string left(const NodeLost& node);
/// "gpu-07 (ranks 48-55) ended its workers without a failure or a stop".
[[nodiscard]] std::string ended_early(const NodeLost& node);
[[nodiscard]] std::string silent(const protocol::Terms& terms);
/// Beyond that limit.
[[nodiscard]] std::string silent_for(Duration time);
/// Too few nodes are left for a round without these.
[[nodiscard]] std::string silent_nodes_awaited(const std::vector<std::string>& hosts,
                                               const protocol::Terms& terms);
/// "gpu-07 (ranks 48-55) is back after 8 s; round 4 continues".
[[nodiscard]] std::string back(const NodeLost& node, Duration silence, Round round);
[[nodiscard]] std::string not_answering(Round round, Duration limit);
/// "gpu-09 joined".
[[nodiscard]] std::string joined(const std::vector<std::string>& hosts);

/// "rank 12 (gpu-03) failed: exit code 1".
[[nodiscard]] std::string failed(const WorkerExit& exit);
/// "rank 0 failed, too, 104 ms later: exit code 1, "peer left"": `other`, beside the first failure.
[[nodiscard]] std::string also_failed(const WorkerExit& other, const WorkerExit& first);
[[nodiscard]] std::string restart(const WorkerExit& exit, RestartCount used,
                                  const protocol::Terms& terms, Duration delay);
/// "all 2 restarts are used", "the only restart is used", "restarts are off (--max-restarts)".
/// Why restarts are left when --min-uptime ends a run.
[[nodiscard]] std::string restarts_unused(RestartCount used, const protocol::Terms& terms);
/// Follows "rank 0 failed".
[[nodiscard]] std::string no_retry(const protocol::Terms& terms);
[[nodiscard]] std::string no_restart_left(const protocol::Terms& terms);
[[nodiscard]] std::string success(int workers, int nodes, RestartCount restarts);
[[nodiscard]] std::string left_too_few(const std::string& left, int nodes,
                                       const protocol::Terms& terms);

[[nodiscard]] std::string left_with_coordinator(const std::string& left);
[[nodiscard]] std::string resigned(const std::string& left);
/// The user of this node has stopped the run on all of them.
[[nodiscard]] std::string stopped_everywhere(const NodeLost& node);
/// What becomes of the run without a node that leaves: for that node. `nodes`: the others.
[[nodiscard]] std::string without_node(int nodes, const protocol::Terms& terms);
[[nodiscard]] std::string continues_elsewhere(int nodes);
inline constexpr const char* kEndsEverywhere = "the run ends on every node";
/// Of a node that has gone when it knew the verdict.
inline constexpr const char* kEndedWithRun = "ended with the run";
/// `first`: the version of the run's first agent.
[[nodiscard]] std::string another_version(const std::string& host, const std::string& version,
                                          const std::string& first);

/// Too few members of the last round are here to decide what follows it.
[[nodiscard]] std::string no_majority(int here, int needed);
/// The same of a node that would coordinate the run after another one.
[[nodiscard]] std::string no_majority_came(int here, Duration waited);
inline constexpr const char* kCoordinatorRestarted = "the coordinator was started again";

/// The wait for nodes, from the coordinator's side.
struct Absence {
  std::vector<std::string> hosts;  // here
  std::vector<int> missing;        // node ranks no agent has, if the others gave theirs
  std::string why;                 // what ended the last round, empty before the first
  int needed = 0;                  // nodes for a round, at least
};
[[nodiscard]] std::string waiting(const Absence& absence, const protocol::Terms& terms);
/// The short form for an agent that has just joined: no names.
[[nodiscard]] std::string waiting_count(int here, const protocol::Terms& terms);
[[nodiscard]] std::string join_timeout(const Absence& absence, const protocol::Terms& terms);
[[nodiscard]] std::string spare(const RunId& run, const protocol::Terms& terms);
[[nodiscard]] std::string finishing(int succeeded, int nodes);
[[nodiscard]] std::string newcomer_while_finishing(int succeeded, int nodes);
/// A hello with the id of an agent that is connected.
[[nodiscard]] std::string not_this_agent(const std::string& host, const std::string& address);
/// For the log, and for the node that has to wait.
/// `who`: an address; empty: nodes of several.
[[nodiscard]] std::string comes_and_goes(const std::string& who, int visits, Duration pause);
[[nodiscard]] std::string held_back(const std::string& who, int visits, Duration left);

/// "the coordinator was suspended for at least 8.6 s; nodes have 5 s to reconnect".
[[nodiscard]] std::string suspended(Duration late, Duration window);
/// A coordinator that started empty, or whose links all broke.
[[nodiscard]] std::string awaiting_return(Round round);
[[nodiscard]] std::string rebuilding(Round round, int here, int nodes);
/// Nodes of a round that have not come to this coordinator are awaited, since too few are here.
[[nodiscard]] std::string claimed_awaited(const std::string& why, Round round, int missing,
                                          const protocol::Terms& terms);
[[nodiscard]] std::string rebuilt(Round round, int nodes);
[[nodiscard]] std::string not_rebuilt(Round round, int missing, Duration limit);
[[nodiscard]] std::string none_reconnected(Round round, Duration limit);
[[nodiscard]] std::string was_stopping(Round round);

[[nodiscard]] std::string stray(Round round);
[[nodiscard]] std::string over(const RunId& run, Duration ago, const protocol::Done& done);
/// For agents that join after a success, and wait for the others to start the run again.
[[nodiscard]] std::string may_start_again(const RunId& run, Duration ago);
/// Why they end: `over` is the sentence about the run.
[[nodiscard]] std::string late(const std::string& over, int here, int needed, Duration waited);
inline constexpr const char* kNoNodeLeft = "no node of the run is left";
/// Their numbers are used up.
inline constexpr const char* kNoRoundLeft =
    "the run has used up its round numbers; start it again with all nodes";
/// All ranks of the connected nodes have succeeded, and no other node reconnected.
[[nodiscard]] std::string others_unknown(Round round, int nodes);

/// "SIGUSR1 received on gpu-03, passed to all nodes".
[[nodiscard]] std::string signal_passed(int signal, const std::string& host);
[[nodiscard]] std::string signal_dropped(int signal, const std::string& host);

/// "round 4 -> 5: <why>; 56 ranks on 7 nodes"; "round 1: ..." for the first.
[[nodiscard]] std::string round_started(Round from, Round to, const std::string& why, int nodes,
                                        WorldSize world);
/// The same of a single node: "restart 1 of 3, round 2".
[[nodiscard]] std::string round_of_one(Round round, RestartCount restarts,
                                       const protocol::Terms& terms, Duration delay);

}  // namespace ddprun::round::reasons

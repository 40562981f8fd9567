// lines: the messages of the agent that are one line each, from the start of a run to its end, and
// what messages are made of: times of day, who a worker is, further lines.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/config/received_signal.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/types.hpp"
#include "base/worker_exit.hpp"

namespace ddprun {

/// Of a run of several nodes.
struct NodesFacts {
  int min = 1;
  int max = 1;
  std::string coordinator;  // "gpu-01:29400"
  enum class At { kThisNode, kElsewhere };
  At at = At::kElsewhere;
};
struct StartFacts {
  std::string version;
  RunId run;
  int workers = 1;                  // of this node
  std::optional<NodesFacts> nodes;  // none: a single node
  std::string log_dir;              // empty: no files that stay
  Duration shutdown_timeout{};
  int max_restarts = 0;
};
/// `ddprun 0.1 run 7f3a: 16 ranks`, of several nodes
/// `ddprun 0.1 run 7f3a: 2 to 4 nodes, coordinator gpu-01:29400 (this node), 8 ranks here`; then
/// what differs from the defaults, and the logs. What does not fit into 80 columns of those has a
/// labelled line of its own, the logs first.
[[nodiscard]] std::string start_line(const StartFacts& facts);

/// `ddprun: note [RUN] text`: from the coordinator, or about the wait for it.
[[nodiscard]] std::string run_note(const std::string& text);
/// `ddprun: note [RESTART] restart 1 of 3, round 2`: the same of a single node.
[[nodiscard]] std::string restart_line(const std::string& text);

/// A worker failed, and `others` ranks are stopped because of it, after `spare` if they still run.
[[nodiscard]] std::string death_line(const WorkerExit& exit, int others, Duration spare = {});
/// How long that line waits for the report, which says the same.
[[nodiscard]] Duration death_line_delay(Duration failure_grace);
/// A worker could not be started. A program that cannot be run is the command's fault or the
/// node's: no rank is named then.
[[nodiscard]] std::string spawn_failure_text(Rank rank, const std::string& host,
                                             const Error& error);

/// A signal to ddprun stops this many workers.
[[nodiscard]] std::string stop_line(const ReceivedSignal& signal, int workers,
                                    Duration shutdown_timeout);
struct PauseFacts {
  int ranks = 0;                       // that run here
  std::optional<Duration> lost_after;  // by the other nodes; none: a single node
};
/// Ctrl-Z, and what follows it.
[[nodiscard]] std::string pause_line(const ReceivedSignal& signal, const PauseFacts& facts);
[[nodiscard]] std::string resume_line(Duration took);
/// `ddprun: note [STOP] 20 s left: 2 ranks still running: 0, 8`; at most 8 ranks are listed.
[[nodiscard]] std::string countdown_line(Duration left, const std::vector<Rank>& running);
/// How the ranks that ddprun stopped ended.
struct StopFacts {
  int gone = 0;        // without those that ended by themselves before
  int killed = 0;      // of these, the ones that needed SIGKILL
  int unkillable = 0;  // still alive
  Duration took{};     // from the first stop signal until no rank was waited for any more
};
/// The stop is complete.
[[nodiscard]] std::string stopped_line(int signal, const StopFacts& stop);
/// A stop signal while no worker runs.
[[nodiscard]] std::string leaving_line(const ReceivedSignal& signal);
/// This node has left before any worker ran.
[[nodiscard]] std::string left_line(int signal);

/// A signal that does not end the run.
struct SignalFacts {
  int signal = 0;
  std::string from;          // the sender, as far as it is known
  std::string host;          // where it came; empty: here
  int ranks = 0;             // that got it here
  std::vector<Rank> ends{};  // that would end by it, and did not get it
  int other_nodes = 0;
  bool others_reached = true;
};
/// "SIGUSR1 from pid 1 (slurmstepd); passed to 8 ranks here and to 7 other nodes".
[[nodiscard]] std::string signal_text(const SignalFacts& facts);

/// Processes that one worker left and that are named: of more the text says "at least".
inline constexpr std::size_t kLeftNamedMax = 1000;

/// "SIGUSR1 would end ranks 0 and 1, which neither handle nor block it; nothing was sent ...".
[[nodiscard]] std::string signal_refusal(int signal, const std::vector<Rank>& ends);

/// "2 processes (sh, python3)".
[[nodiscard]] std::string left_behind_text(const std::vector<std::string>& names);
/// What a worker left behind when it ended.
struct LeftBehindFacts {
  WorkerName worker;
  std::vector<std::string> names;  // of its processes that live
  int signal = 0;                  // that they get now; 0: they are waited for
  bool quiet = false;              // after a success: it has made no progress for `timeout`
  Duration since_exit{};
  Duration timeout{};  // --straggler-timeout
};
[[nodiscard]] std::string left_behind_line(const LeftBehindFacts& facts);

/// A process that SIGKILL did not end, as /proc shows it.
struct StuckProcess {
  int pid = 0;
  std::string name{};               // as ps shows it
  char state = '?';                 // D: it waits for the kernel
  std::string wait_channel{};       // where; empty: unknown
  std::vector<std::string> gpus{};  // "/dev/nvidia2": those that it holds
};
/// A worker that SIGKILL did not end, or that left what it did not end.
struct Unkillable {
  WorkerName worker{};
  std::string
      left_behind{};  // "2 processes (sh, python3)": the worker has ended, and they have not
  std::vector<StuckProcess> processes{};
};
[[nodiscard]] std::string unkillable_line(const Unkillable& unkillable);

/// What the workers of a round had started, and ddprun ended; of workers that ended by themselves
/// without leaving anything there is no line.
struct CleanupFacts {
  int workers = 0;      // that ddprun stopped
  int descendants = 0;  // processes that workers had started
  int still_alive = 0;  // workers or groups of descendants that SIGKILL did not end
  Duration took{};
};
/// `ddprun: note [CLEANUP] 8 workers + 64 descendants gone in 0.9 s`.
[[nodiscard]] std::string cleanup_line(const CleanupFacts& facts);
/// About files that appeared in /dev/shm during the run and that no process has open; there is one
/// at least.
[[nodiscard]] std::string shared_names_line(const std::vector<std::string>& names,
                                            std::int64_t bytes);

/// The run succeeded. The line of a spare says that it was one: its exit code 0 alone would suggest
/// that it trained.
enum class NodePart { kTrained, kSpare };
struct DoneFacts {
  std::string text;  // of a run of several nodes, from its coordinator; empty: a single node
  int workers = 1;
  RestartCount restarts{0};
  Duration took{};
  NodePart part = NodePart::kTrained;
};
/// `ddprun: done: all 16 ranks exited with code 0 after 3 h 12 min; 0 restarts`, with several nodes
/// `ddprun: done: all 16 ranks on 2 nodes exited ...`. A spare's line has no duration: it waited.
[[nodiscard]] std::string done_line(const DoneFacts& facts);

/// Of a script that starts workers of its own, although ddprun has started them: a process that
/// takes part in the round as rank 0, while another one does.
struct Claimant {
  int pid = 0;
  std::optional<Rank> below{};  // the worker of this node from which it descends; none: unknown
  bool is_worker = false;       // or which it is
};
/// What ddprun has started.
struct Started {
  int workers_here = 1;
  int nodes = 1;
};
/// "rank 0 is two processes at once, ...", with what to try. Empty: no script that starts workers
/// of its own was seen, because neither process descends from a worker here, or one is a worker.
[[nodiscard]] std::string own_workers_text(const Claimant& first, const Claimant& second,
                                           Started started);

// Pieces of messages.

/// "11:02:41.118Z", UTC.
[[nodiscard]] std::string time_text(WallTime when);

/// "rank 12 (local 4, pid 48213) on gpu-02".
[[nodiscard]] std::string who(const WorkerName& worker);

/// "rank 3 last finished step 1041, others 1042", where they say so; empty: none does.
[[nodiscard]] std::string steps_text(Rank rank, std::optional<std::int64_t> step,
                                     const std::vector<std::int64_t>& others);

/// A further line of a message: "\n  when      text".
[[nodiscard]] std::string labelled(const std::string& label, const std::string& text);

}  // namespace ddprun

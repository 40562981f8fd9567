// The messages between an agent and its coordinator, as plain structs. The codec (codec.hpp)
// encodes them, rendezvous/round decides on them, rendezvous/client is the agent's side. Every
// round number fences: a message of another round is dropped and counted.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/store_facts.hpp"
#include "base/types.hpp"
#include "base/worker_exit.hpp"

namespace ddprun::protocol {

using Milliseconds = std::chrono::milliseconds;

/// The first four bytes of an agent's connection; frames follow.
inline constexpr char kMagic[] = {'D', 'D', 'P', 'R'};
inline constexpr int kProtocolVersion = 1;

/// The state of one node's workers in a round, as its agent sees it.
enum class NodeState : std::uint8_t {
  kIdle,       // no worker was started in this round
  kStarting,   // the round is known; the workers of an older one may still be ending
  kRunning,    // all workers were started
  kSucceeded,  // all exited with code 0
  kFailed,     // a worker failed; the others may still be ending
  kStopping,   // a stop was ordered
  kStopped,    // no worker is left
};

/// Identifies a round: two coordinators (one crashed, one started without its state) may use the
/// same number.
struct RoundStamp {
  Round number{0};
  std::string author;  // the coordinator process that decided the round
  friend bool operator==(const RoundStamp&, const RoundStamp&) = default;
};

/// What all agents of a run must agree on, and the times that its first agent sets for the run.
struct Terms {
  int nodes_min = 1;
  int nodes_max = 1;
  int max_restarts = 0;
  Milliseconds join_timeout{600'000};
  Milliseconds last_call_timeout{30'000};
  Milliseconds keep_alive_interval{1'000};
  int keep_alive_max_attempt = 5;
  bool commands_may_differ = false;            // --allow-different-commands
  bool is_named = false;                       // the run id was given: it tells jobs apart
  std::optional<Milliseconds> min_uptime{};    // --min-uptime; unset: off
  std::optional<Milliseconds> hang_timeout{};  // --hang-timeout; unset: off
  std::string list_begins{};                   // of --hosts the first, host:port; else empty
  std::string program{};  // a fingerprint of the program without its arguments; empty: not told
  friend bool operator==(const Terms&, const Terms&) = default;
  /// An agent that is silent for longer is lost.
  [[nodiscard]] Milliseconds silence_max() const {
    return keep_alive_interval * keep_alive_max_attempt;
  }
};

/// What a round says of its place in the succession of rounds (docs/FAILOVER.md). Empty where no
/// other node may coordinate the run.
struct Succession {
  int needs = 0;             // votes with which it is settled; 0: from the start
  bool has_vote = false;     // the node was in the settled round before this one, or there was none
  bool with_author = false;  // the node of its coordinator is one of its members
  bool at_endpoint = false;  // its coordinator listens where the run's endpoint is
  bool after_unsettled = false;  // no node knew whether the round before it was settled
  // Of the first round that this one comes from: random, and told to members of rounds alone.
  std::string origin{};
  friend bool operator==(const Succession&, const Succession&) = default;
  /// Whether other nodes may coordinate the run.
  [[nodiscard]] bool exists() const { return has_vote || needs > 0; }
};

/// The part of an origin, a UUID, that `lead` tells others than members: it tells runs apart, and
/// proves nothing, since the rest is random, too.
[[nodiscard]] inline std::string name_of_origin(const std::string& origin) {
  constexpr std::size_t kNameBytes = 13;
  return origin.substr(0, kNameBytes);
}

/// A node that may coordinate the run after the one that does.
struct Successor {
  int group_rank = 0;
  std::string host;     // for messages
  std::string address;  // as the receiver reaches it
  std::uint16_t port = 0;
  friend bool operator==(const Successor&, const Successor&) = default;
};

/// In a hello after a lost link: the round this agent is in.
struct Claim {
  RoundStamp stamp;
  int group_rank = 0;
  int group_size = 1;
  RestartCount restarts{0};
  NodeState state = NodeState::kIdle;
  Succession succession{};
  bool settled = false;  // the round is, as its coordinator has told
  /// Of kFailed: the coordinator had said nothing since the failure.
  bool failed_unheard = false;
  /// A restart answers the failure of this round, and is among `restarts`.
  bool restart_told = false;
  /// Other ranks of the round were stopped before they had finished: it is no success.
  bool cut_short = false;
  friend bool operator==(const Claim&, const Claim&) = default;
};

/// Agent: the first message on every link.
struct Hello {
  static constexpr std::string_view kType = "hello";
  int protocol = kProtocolVersion;
  RunId run_id;
  AgentId agent;                 // random, one per process
  std::string host;              // for messages and for the first order; never resolved
  std::string address;           // --local-addr; empty: the source address of the link
  std::uint16_t store_port = 0;  // of the open listener for the next round's store
  int local_world_size = 1;
  std::string role = "default";
  Terms terms;
  std::optional<int> node_rank;        // --node-rank
  std::optional<int> scheduler_index;  // the position assigned by the scheduler
  std::string fingerprint;             // of the command; empty: not compared
  std::string command;                 // for messages, where fingerprints differ
  Milliseconds age{0};                 // since the agent process started
  Milliseconds stop_timeout{30'000};   // --shutdown-timeout, on the wire with --failure-grace
  Round seen{0};                       // the highest round that any coordinator announced; 0: none
  bool runs_coordinator = false;       // the coordinator runs in this agent's process
  std::optional<Claim> claim;
  std::vector<std::string> addresses{};  // of its interfaces; empty: untold
  std::uint16_t standby_port = 0;        // where it would coordinate the run; 0: it does not
  std::string version{};                 // of its ddprun; empty: older than this field
  std::string reached{};  // the coordinator's address that this link connected to; empty: untold

  /// The highest round that it knows of, announced or claimed.
  [[nodiscard]] Round heard_of() const {
    return claim ? std::max(seen, claim->stamp.number) : seen;
  }
  friend bool operator==(const Hello&, const Hello&) = default;
};

enum class RefusalCode : std::uint8_t {
  kProtocol,         // another protocol number
  kMalformed,        // not a message, or not allowed at this point
  kWrongRun,         // another run id
  kTermsDiffer,      // another MIN:MAX, --max-restarts, --hang-timeout...
  kCommandDiffers,   // another fingerprint
  kNodeRankTaken,    // an agent with this --node-rank is connected
  kNodeRankTooHigh,  // --node-rank is not below MAX
  kRunOver,          // the run ended, not successfully
  kRunFull,          // kAgentsPerRunMax agents
  kNotAnswering,     // sends heartbeats, but does not answer its round
};

/// Coordinator: you are not part of this run. The agent exits with the sentence.
struct Refused {
  static constexpr std::string_view kType = "refused";
  RefusalCode code = RefusalCode::kMalformed;
  std::string sentence;
  Milliseconds retry_after{0};  // above 0: one retry is allowed after this long
  friend bool operator==(const Refused&, const Refused&) = default;
};

/// How a wait ends when nothing else ends it.
enum class WaitEnd : std::uint8_t {
  kRunFails,       // too few nodes within join_timeout
  kRoundStarts,    // with the nodes that are connected; last_call_timeout
  kOthersAreLost,  // members of a round that a new coordinator learned of; the silence limit
};

/// Coordinator: you have joined; this is what the run waits for.
struct Waiting {
  static constexpr std::string_view kType = "waiting";
  int here = 0;
  int nodes_min = 1;
  int nodes_max = 1;
  Round round{0};        // the last round of the run; 0: none yet
  Milliseconds left{0};  // until the wait ends; 0: it has no limit
  std::string text;
  WaitEnd then = WaitEnd::kRunFails;
  std::vector<Successor> successors{};  // of the coordinator, while a round lives
  friend bool operator==(const Waiting&, const Waiting&) = default;
};

/// Coordinator: end the current round, then start this one.
struct StartRound {
  static constexpr std::string_view kType = "round";
  RoundStamp stamp;
  int group_rank = 0;
  int group_size = 1;
  Rank rank_base{0};
  WorldSize world_size{1};
  int role_rank_base = 0;
  int role_world_size = 1;
  std::string master_address;
  std::uint16_t master_port = 0;
  RestartCount restarts{0};
  std::string reason;
  bool may_be_last = false;  // a failure of the round may end the run: no restart may follow
  /// For group rank 0: the addresses from which the nodes of the round may come to its store.
  /// Empty: they are not all known, and every address may.
  std::vector<std::string> store_peers{};
  Succession succession{};
  std::vector<Successor> successors{};  // in the order in which they follow the coordinator
  friend bool operator==(const StartRound&, const StartRound&) = default;
};

/// Agent: the state of this node in this round. Sent when the round is accepted (kStarting), when
/// all workers run, when all have succeeded, when one fails. Of the round before: kSucceeded, if
/// all ranks exited with 0 before they took the new one.
struct Report {
  static constexpr std::string_view kType = "report";
  Round round{0};
  NodeState state = NodeState::kStarting;
  std::uint16_t store_port = 0;         // the listener for the next round
  std::optional<WorkerExit> failure{};  // of kFailed: the first; never a worker we stopped
  friend bool operator==(const Report&, const Report&) = default;
};

/// Agent: no worker of this round is left on this node.
struct Stopped {
  static constexpr std::string_view kType = "stopped";
  Round round{0};
  Milliseconds took{0};
  int killed = 0;   // workers that needed SIGKILL
  int stopped = 0;  // workers that were still running, these included
  // About its ranks, if the failure that ended the round was a witness: before any was stopped.
  std::vector<RankFacts> ranks{};
  // At the same time, from the node that serves the round's store: who waits there for which key.
  std::vector<StoreWait> waits{};
  // Of a rank that failed by itself, though the node was told to stop first or had another failure.
  std::optional<WorkerExit> failure{};
  int alike = 0;  // of its ranks, those that failed in the same way as its first failure
  /// How long ranks that still ran then had to end by themselves before they were stopped.
  Milliseconds spared{0};
  friend bool operator==(const Stopped&, const Stopped&) = default;
};

/// Agent: I want to leave the run. The coordinator closes the link; or, if the run has already
/// failed, the agent waits for the report, which `done` contains.
struct Leave {
  static constexpr std::string_view kType = "leave";
  int exit_code = 1;  // of this agent unless `done` has another; never 0
  std::string reason;
  Round round{0};          // the last in which it started workers; 0: none
  bool requested = false;  // a stop was: workers that handle one have time to save
  bool all_nodes = false;  // of the run, not of this node alone: the answer is `done`
  friend bool operator==(const Leave&, const Leave&) = default;
};

/// Coordinator: what becomes of the run without your node. The answer to a `leave` after which the
/// node gets no verdict; the link ends behind it.
struct LetGo {
  static constexpr std::string_view kType = "let_go";
  std::string text;  // "the run continues on 3 nodes"
  friend bool operator==(const LetGo&, const LetGo&) = default;
};

/// Agent: nothing was received on this link, so I close it and connect again. Without this message
/// the end of a link is the loss of its agent.
struct Reconnecting {
  static constexpr std::string_view kType = "reconnecting";
  std::string reason;
  friend bool operator==(const Reconnecting&, const Reconnecting&) = default;
};

/// Coordinator: the run is over. The agent exits with the code.
struct Done {
  static constexpr std::string_view kType = "done";
  int exit_code = 0;
  std::string text;
  std::optional<RunFailure> failure{};  // why the run failed, if a worker was the cause
  std::string reporter{};               // the agent that prints the whole report; empty: none
  bool node_lost = false;  // the run ends because a node left or was lost, not by a failure
  friend bool operator==(const Done&, const Done&) = default;
};

/// Coordinator: stop the workers of this round and stay connected.
struct Stop {
  static constexpr std::string_view kType = "stop";
  Round round{0};
  int signal = 15;
  Milliseconds grace{0};
  std::string reason;
  std::optional<Done>
      verdict{};       // how the run failed, as far as it is known before the workers end
  bool waits = false;  // the run waits to start the next round: workers that survive may be held
  bool requested = false;  // see Leave
  /// If a restart answers the failure of this round: how many are used, with that one.
  std::optional<int> restarts{};
  friend bool operator==(const Stop&, const Stop&) = default;
};

/// Agent: this signal came here, and not to end the run: it is for the workers of every node.
/// Coordinator, with the host where it came: pass it to yours. It is not repeated after a lost
/// link, and not passed on in another round.
struct PassSignal {
  static constexpr std::string_view kType = "signal";
  Round round{0};
  int signal = 10;
  std::string from{};  // the sender, as far as it is known
  std::string host{};  // where it came
  bool force = false;  // also to ranks that would end by it
  friend bool operator==(const PassSignal&, const PassSignal&) = default;
};

/// Agent: heartbeat. The coordinator answers each with one.
/// Coordinator, with a number: the agent sends it back at once, behind all that it has said.
struct Beat {
  static constexpr std::string_view kType = "beat";
  std::optional<int> echo{};
  friend bool operator==(const Beat&, const Beat&) = default;
};

/// Agent: so long has no rank of this node made progress; repeated while --hang-timeout has passed,
/// and once when a rank moves again. It is not repeated after a lost link: the next one is near.
struct Quiet {
  static constexpr std::string_view kType = "quiet";
  Round round{0};
  Milliseconds lasts{0};
  std::optional<int> echo{};  // of the question that this answers
  friend bool operator==(const Quiet&, const Quiet&) = default;
};

/// Coordinator, with a number: all nodes are quiet; look once more, and answer with `Quiet`.
/// Without: they still are; save the stacks of your ranks, and give these up.
struct Hang {
  static constexpr std::string_view kType = "hang";
  Round round{0};
  std::optional<int> echo{};
  friend bool operator==(const Hang&, const Hang&) = default;
};

/// Coordinator, to the successors: enough members have taken this round on, so that no other one
/// can follow the round before it.
struct Settled {
  static constexpr std::string_view kType = "settled";
  RoundStamp stamp;
  friend bool operator==(const Settled&, const Settled&) = default;
};

/// A coordinator, to another one of its run: I decide what follows this settled round; if you do
/// not decide after it or a later one, send your nodes to this port of the address that I come
/// from.
struct Lead {
  static constexpr std::string_view kType = "lead";
  RunId run_id;
  Round round{0};
  std::uint16_t port = 0;
  std::string origin{};       // name_of_origin() of the settled round
  std::string fingerprint{};  // as in Hello; empty: the nodes may have different commands
  friend bool operator==(const Lead&, const Lead&) = default;
};

/// Coordinator: my node leaves the run, and one of the successors is to coordinate it. The last
/// message on the link.
struct Resigned {
  static constexpr std::string_view kType = "resigned";
  std::string reason;
  bool cuts_short = false;  // ranks of the live round that are on my node have not finished
  friend bool operator==(const Resigned&, const Resigned&) = default;
};

/// Coordinator: the run is coordinated there, and not here.
struct Moved {
  static constexpr std::string_view kType = "moved";
  std::string address;
  std::uint16_t port = 0;
  friend bool operator==(const Moved&, const Moved&) = default;
};

/// Agent, in place of hello: which coordinator of this run answers at this address? Coordinator:
/// the one with this nonce, and whether its run has had a round.
struct Probe {
  static constexpr std::string_view kType = "probe";
  std::string nonce{};
  std::string run_id{};  // of who asks; empty: any
  bool had_round = false;
  friend bool operator==(const Probe&, const Probe&) = default;
};

/// Either: your last message is unknown here and was ignored.
struct Unknown {
  static constexpr std::string_view kType = "unknown";
  std::string sentence;
  friend bool operator==(const Unknown&, const Unknown&) = default;
};

/// Each is named on the wire by its kType.
using Message = std::variant<Hello, Refused, Waiting, StartRound, Report, Stop, Stopped, Leave,
                             Reconnecting, Done, Beat, Unknown, PassSignal, Quiet, Hang, Settled,
                             Lead, Moved, Resigned, LetGo, Probe>;

}  // namespace ddprun::protocol

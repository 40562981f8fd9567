// What Membership takes and what it orders: the events and actions between the agent's side of the
// link and the shell around it. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace ddprun::client {

/// The shell's connection attempts, numbered by Connect.
using LinkId = std::uint64_t;

struct LinkUp {
  LinkId link = 0;
  bool elsewhere = false;  // the name means another host than that which answered there last
  std::string reached{};   // the coordinator's address, with its zone
};
/// The attempt failed, or the connection ended. Not expected after CloseLink.
struct LinkDown {
  LinkId link;
  std::string evidence;
  bool refused = false;  // by the kernel of every address: no process listens there
};
struct Incoming {
  LinkId link;
  protocol::Message message;
};
/// A listener for the next round's store is open on this port.
struct StoreOpened {
  std::uint16_t port;
};
/// All workers of the round were started.
struct GroupRunning {
  Round round;
};
/// All workers exited with 0. Processes that they left behind may still run: GroupGone follows.
struct GroupSucceeded {
  Round round;
};
/// All workers of the node exited with 0 in an earlier round, `finished`, instead of taking this
/// one, in which they are started again.
struct FinishedBefore {
  Round round;
  Round finished;
};
struct GroupFailed {
  Round round;
  WorkerExit first;
};
/// Nothing of the group is left.
struct GroupGone {
  Round round;
  protocol::Milliseconds took{0};
  int killed = 0;
  int stopped = 0;  // workers that were still running
  std::vector<RankFacts> ranks{};
  std::vector<StoreWait> waits{};
  std::optional<WorkerExit> other_failure{};
  int alike = 0;
  protocol::Milliseconds spared{0};  // see protocol::Stopped
};
/// How long no worker has made progress. Not kept while no coordinator answers: the shell repeats
/// it.
struct GroupQuiet {
  Round round;
  protocol::Milliseconds lasts{0};
  std::optional<int> echo{};  // of the CheckHang that this answers
};
/// The last client of a released store has gone.
struct StoreIdle {
  Round round;
};
/// This node is to leave the run and end with the code (a signal, a local error), unless the run
/// has its verdict already. The second time: without waiting for other nodes.
struct LeaveAsked {
  int exit_code = 1;
  std::string reason;
  bool requested = false;  // by a stop, for which the workers of all nodes may save
  bool all_nodes = false;  // the run is to end on all of them
};
/// A signal that does not end the run came to this node.
struct SignalCame {
  enum class For { kThisNode, kAllNodes };
  int signal = 10;
  std::string from{};  // the sender, as far as it is known
  For whom = For::kAllNodes;
  bool force = false;  // also to workers that would end by it
};
/// Another process coordinates the run, or its place is not known.
struct CoordinatorMoved {
  std::string coordinator;  // for sentences
  bool known = true;        // the shell's Connect goes there; else the link stays as it is
  bool here = false;        // in this process
};
/// What names the coordinator ("etcd h1:2379") does not answer, which is no fault of this node: the
/// time does not count.
struct CoordinatorAwaited {
  std::string what{};
};
/// No process coordinates the run, and this one may not: its terms are not the run's.
struct ElectionBarred {
  std::string why;
};
/// This node was to coordinate the run, and cannot, or got no majority.
struct Abdicated {
  std::string reason;
};
struct Tick {};
using Event =
    std::variant<LinkUp, LinkDown, Incoming, StoreOpened, GroupRunning, GroupSucceeded, GroupFailed,
                 GroupGone, FinishedBefore, GroupQuiet, StoreIdle, LeaveAsked, SignalCame,
                 CoordinatorMoved, CoordinatorAwaited, ElectionBarred, Abdicated, Tick>;

/// Where another node than that of the endpoint coordinates, or may.
struct Place {
  std::string host;  // for sentences
  std::string address;
  std::uint16_t port = 0;
  friend bool operator==(const Place&, const Place&) = default;
};
struct Connect {
  LinkId link = 0;
  std::optional<Place> to{};  // absent: where the run's endpoint is
};
/// This node is a candidate: a coordinator that waits for a majority, where the node stands by.
/// Connect to it follows; Abdicated, if it cannot be made or gets no majority.
struct Coordinate {
  std::string ended_author;  // see round::SuccessionOptions
  std::string why;
  std::string origin{};  // the same
};
/// It is a candidate no more.
struct Withdraw {};
struct CloseLink {
  LinkId link;
};
struct SendMessage {
  LinkId link;
  protocol::Message message;
};
struct OpenStore {};
/// The open listener becomes the store of this round; OpenStore for the next one follows.
struct ServeStore {
  Round round;
  std::vector<std::string> peers{};  // see protocol::StartRound::store_peers
};
/// The round has ended here. Ranks of other nodes may still save what they have: StoreIdle follows
/// when the last client of the store has gone, at once if there is none.
struct ReleaseStore {
  Round round;
};
/// No node needs the store of this round any more, or its time is over: ranks blocked in it fail
/// immediately.
struct CloseStore {
  Round round;
};
struct StartGroup {
  protocol::StartRound round;
};
struct StopGroup {
  Round round;
  int signal = 15;
  protocol::Milliseconds grace{0};
  bool look = false;  // at all ranks first: the failure elsewhere complained of other ranks
  enum class Then { kEnd, kWait, kNextRound };
  Then then = Then::kEnd;  // else ranks that survive stay for the next round, which may be ordered
  bool requested = false;  // workers that handle a stop are asked to save
  bool after_failure = false;  // which ends the run: workers have the failure grace
};
struct ArmTimer {
  TimePoint deadline;
};
/// A line for the console and the log.
struct Note {
  std::string text;
};
/// The workers here get this signal, once.
struct DeliverSignal {
  enum class Others { kNone, kTold, kUnreachable };  // other nodes of the round
  int signal = 10;
  std::string from{};  // the sender, as far as it is known
  std::string host{};  // where it came; empty: here
  Others others = Others::kNone;
  int other_nodes = 0;
  bool force = false;  // see SignalCame
};
/// The workers of all nodes are quiet: with a number, look once more, and say so with GroupQuiet;
/// without, give them up.
struct CheckHang {
  std::optional<int> echo{};
};
/// Nothing is left to do: the agent exits with this code. `done` is the report of the run, if one
/// was received.
struct End {
  int exit_code = 0;
  std::string text{};
  std::optional<protocol::Done> done{};
  std::string rest{};  // of a node that left: what the coordinator said of the run without it
};
using Action = std::variant<Connect, Coordinate, Withdraw, CloseLink, SendMessage, OpenStore,
                            ServeStore, ReleaseStore, CloseStore, StartGroup, StopGroup, ArmTimer,
                            Note, DeliverSignal, CheckHang, End>;
using Actions = std::vector<Action>;

}  // namespace ddprun::client

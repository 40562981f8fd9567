// Membership: the agent's side of the link to the coordinator, over however many connections it
// takes: says hello, keeps alive, reconnects, fences by round, and turns rounds into "stop this
// group", "start that one". Pure: no socket, clock, process or log. Owned by one agent shell,
// called on its thread only.
//
// The shell carries out the actions in order and feeds back what happened. It answers Connect with
// LinkUp or LinkDown, OpenStore with StoreOpened, StartGroup with GroupGone, when nothing of the
// group is left. Before that come GroupSucceeded, when all workers have exited with 0, or
// GroupFailed, at the first failure; a group that fails ends its other workers without StopGroup.
#pragma once

#include <cstdint>
#include <functional>
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
  LinkId link;
};
/// The attempt failed, or the connection ended. Not expected after CloseLink.
struct LinkDown {
  LinkId link;
  std::string evidence;
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
};
struct Tick {};
using Event = std::variant<LinkUp, LinkDown, Incoming, StoreOpened, GroupRunning, GroupSucceeded,
                           GroupFailed, GroupGone, StoreIdle, LeaveAsked, Tick>;

struct Connect {
  LinkId link;
};
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
};
/// The round has ended here. Ranks of other nodes may still save what they have: StoreIdle follows
/// when the last client of the store has gone, at once if there is none.
struct ReleaseStore {
  Round round;
};
/// Nobody needs the store of this round any more, or had time enough: ranks blocked in it fail at
/// once.
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
};
struct ArmTimer {
  TimePoint deadline;
};
/// A line for the console and the log, on change only.
struct Note {
  std::string text;
};
/// Nothing is left to do: the agent ends with this code. `done` has the report of the run if it
/// came.
struct End {
  int exit_code = 0;
  std::string text;
  std::optional<protocol::Done> done;
};
using Action = std::variant<Connect, CloseLink, SendMessage, OpenStore, ServeStore, ReleaseStore,
                            CloseStore, StartGroup, StopGroup, ArmTimer, Note, End>;
using Actions = std::vector<Action>;

inline constexpr Duration kRetryMin = std::chrono::milliseconds(50);
inline constexpr Duration kRetryMax = std::chrono::milliseconds(1000);
inline constexpr Duration kCoordinatorTimeout = std::chrono::seconds(60);
// A new link must bring an answer to the hello within this, or it is tried again.
inline constexpr Duration kConnectMax = std::chrono::seconds(5);
// Whoever is to go at once waits this long for the coordinator's last word.
inline constexpr Duration kHurryMax = std::chrono::seconds(1);
// A wait that is over sooner is not worth a line.
inline constexpr Duration kQuietMax = std::chrono::seconds(3);

struct MembershipOptions {
  protocol::Hello hello;    // store_port, age and claim are filled in here
  std::string coordinator;  // host:port, for sentences
  Duration coordinator_timeout = kCoordinatorTimeout;
};

/// The link to the coordinator: each state owns its deadlines.
namespace link {
struct Down {
  std::optional<TimePoint> retry_at{};  // none: the store's port is to come, or nothing is
};
struct Connecting {
  TimePoint since;
};
struct Open {  // hello waits for the store's port
  TimePoint heard;
};
struct Greeted {
  TimePoint heard;
  TimePoint beat_at;
};
struct Answered : Greeted {};  // this link has brought a message
using State = std::variant<Down, Connecting, Open, Greeted, Answered>;
}  // namespace link

class Membership {
 public:
  Membership(MembershipOptions options, TimePoint start);

  /// The first actions: open a store listener.
  [[nodiscard]] Actions begin(TimePoint now);
  /// Takes one event; returns what to do, in order. Nothing happens after End.
  [[nodiscard]] Actions step(const Event& event, TimePoint now);
  /// The coordinator was put into this process after all: the next hello says so.
  void coordinator_is_here() { options_.hello.runs_coordinator = true; }

  /// The round this agent knows of; number 0 before the first.
  [[nodiscard]] Round round() const { return round_ ? round_->stamp.number : Round(0); }
  [[nodiscard]] protocol::NodeState state() const { return state_; }
  /// Whether a coordinator has ever answered.
  [[nodiscard]] bool joined() const { return joined_; }
  [[nodiscard]] bool connected() const { return is_up(); }
  /// The state of the link: "Answered".
  [[nodiscard]] const char* link_name() const;
  [[nodiscard]] bool ended() const { return ended_; }
  /// Messages of another round that were dropped.
  [[nodiscard]] std::uint64_t stale() const { return stale_; }

 private:
  enum class LinkEnd : std::uint8_t { kOpen, kGone };  // whether the shell still has the connection
  // kStraggling: all workers exited with 0, and processes that they left behind still run.
  enum class Group : std::uint8_t { kNone, kAlive, kStraggling, kEnding };
  struct Wait {
    std::string text;
    std::string end;     // "gives up"
    std::string option;  // of --rdzv-conf, which sets its length
    std::optional<TimePoint> until;
  };
  struct ReleasedStore {
    Round round;
    TimePoint close_at;
  };

  // membership_link.cpp
  void on(const LinkUp& up);
  void on(const LinkDown& down);
  void on(const Incoming& incoming);
  void on(const StoreOpened& opened);
  void on(const Tick& tick);
  void connect();
  void lose_link(const std::string& evidence, LinkEnd link_end);
  void drop_link(LinkEnd link_end);
  void notice_silence();
  void beat_if_due();
  [[nodiscard]] bool is_down() const { return std::holds_alternative<link::Down>(link_); }
  [[nodiscard]] bool is_up() const {
    return !is_down() && !std::holds_alternative<link::Connecting>(link_);
  }
  [[nodiscard]] bool answered() const { return std::holds_alternative<link::Answered>(link_); }
  [[nodiscard]] link::Greeted* greeting();  // null unless hello was said on this link
  [[nodiscard]] TimePoint heard();          // of a link that is up
  void hear(TimePoint when);
  void wait_for_coordinator(const std::string& why);
  [[nodiscard]] TimePoint coordinator_deadline() const;
  void give_up_on_coordinator();
  void say_hello(TimePoint heard);
  void send(protocol::Message message);
  void arm();

  // membership.cpp
  void on(const GroupRunning& running);
  void on(const GroupSucceeded& succeeded);
  void on(const GroupFailed& failed);
  void on(const GroupGone& gone);
  void on(const StoreIdle& idle);
  void on(const LeaveAsked& leave);
  void take(const protocol::StartRound& start);
  void take(const protocol::Stop& stop);
  void take(const protocol::Done& done);
  void take(const protocol::Refused& refused);
  void take(const protocol::Waiting& waiting);
  void take_while_leaving(const protocol::StartRound& start);
  void stop_leaving();
  [[nodiscard]] End known_end(End otherwise) const;
  [[nodiscard]] End succeeded_here(const std::string& why_unknown) const;
  void report();
  [[nodiscard]] bool can_stop_group() const {
    return group_ == Group::kAlive || group_ == Group::kStraggling;
  }
  void stop_group(int signal, protocol::Milliseconds grace);
  void start_group();
  void end(End verdict);
  void end_if_nothing_left();
  void release_store();
  void close_stores(const std::function<bool(const ReleasedStore&)>& which);
  void close_overdue_stores();
  void wait_for_other_ranks();
  void note(std::string text);
  void wait_for(Wait wait);
  void note_wait_if_due();
  [[nodiscard]] bool is_current(Round round) const;

  MembershipOptions options_;
  TimePoint start_;
  TimePoint now_;
  Actions actions_;

  link::State link_;
  LinkId link_id_ = 0;
  bool joined_ = false;  // any link ever has brought a message
  int attempts_ = 0;
  TimePoint lost_at_;  // when the coordinator was last heard of, or the start
  std::optional<TimePoint> armed_;
  bool node_rank_retried_ = false;

  std::uint16_t store_port_ = 0;  // 0: being opened
  std::optional<Round> serving_;
  std::vector<ReleasedStore> released_;
  std::optional<protocol::StartRound> round_;
  protocol::NodeState state_ = protocol::NodeState::kIdle;
  Group group_ = Group::kNone;
  Round group_round_{0};
  std::optional<WorkerExit> failure_;         // the first of round_
  std::optional<protocol::Stopped> stopped_;  // of round_
  Round seen_{0};                             // the highest round any coordinator told of
  std::string last_note_;
  std::optional<TimePoint> waits_since_;  // nothing runs, and something is waited for
  std::optional<Wait> wait_;              // what for, if that was not told yet
  std::vector<std::string> told_waits_;   // since the coordinator last answered
  bool loss_told_ = false;                // that the coordinator is away
  std::string cause_;                     // why the last attempt to reach it failed

  std::optional<protocol::Done> told_verdict_;  // of a run that failed: its report is to come
  std::optional<End> leaving_;                  // asked to go; the coordinator's answer is to come
  bool hurries_ = false;                        // asked twice
  std::optional<TimePoint> leave_until_;
  std::optional<End> verdict_;  // waits for the group to be gone
  bool leave_asked_ = false;
  bool ended_ = false;
  std::uint64_t stale_ = 0;
};

}  // namespace ddprun::client

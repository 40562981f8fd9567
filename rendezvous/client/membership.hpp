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

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/signals.hpp"
#include "rendezvous/client/membership/events.hpp"
#include "rendezvous/client/membership/notices.hpp"
#include "rendezvous/client/membership/search.hpp"
#include "rendezvous/client/membership/states.hpp"

namespace ddprun::client {

inline constexpr Duration kRetryMin = std::chrono::milliseconds(50);
inline constexpr Duration kRetryMax = std::chrono::milliseconds(1000);
inline constexpr Duration kCoordinatorTimeout = std::chrono::seconds(60);
/// How long a node waits for a coordinator while what names one does not answer. A verdict is kept
/// for longer (etcd::kOverKept): each node that comes back hears it.
inline constexpr Duration kAwaitedMax = std::chrono::days(7);
/// A new link must bring an answer to the hello within this, or it is tried again.
inline constexpr Duration kConnectMax = std::chrono::seconds(5);
/// Name lookup and connection of one attempt. LinkDown then names the evidence, before Membership
/// gives the attempt up.
inline constexpr Duration kAttemptMax = kConnectMax * 9 / 10;
/// After a second stop signal the coordinator's last answer is awaited this long.
inline constexpr Duration kHurryMax = std::chrono::seconds(1);
/// The coordinator's answer to a leave is awaited so long beyond the time for the workers of all.
inline constexpr Duration kLeaveMargin = std::chrono::seconds(5);

struct MembershipOptions {
  protocol::Hello hello;    // store_port, age and claim are filled in here
  std::string coordinator;  // host:port, for sentences
  Duration coordinator_timeout = kCoordinatorTimeout;
  Duration failure_grace{};  // before the stop timeout, where a failure ends the run
  /// Workers that survive a failure are held: their group is told what follows also while it ends.
  bool keeps_survivors = false;
  bool rank_decides = false;  // --node-rank numbers the node (static); else it may be ignored
  /// Where else than at the endpoint a node without a round may find the coordinator.
  std::vector<Place> hosts{};
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
  /// This node may coordinate the run, and listens for that: the next hello says so.
  void stand_by(std::uint16_t port) { options_.hello.standby_port = port; }

  /// host:port, for people.
  [[nodiscard]] const std::string& coordinator() const { return options_.coordinator; }
  /// The round this agent knows of; number 0 before the first.
  [[nodiscard]] Round round() const { return round_ ? round_->number() : Round(0); }
  [[nodiscard]] protocol::NodeState state() const {
    return round_ ? round_->state : protocol::NodeState::kIdle;
  }
  /// Whether a coordinator has ever answered.
  [[nodiscard]] bool joined() const { return reach_.joined; }
  /// The coordinator of the run, as far as is known, is in this process.
  [[nodiscard]] bool hosts_coordinator() const { return options_.hello.runs_coordinator; }
  [[nodiscard]] bool connected() const { return is_up(); }
  /// Whether the coordinator answers on the link that there is.
  [[nodiscard]] bool has_coordinator() const { return answered(); }
  /// Where coordinators were, other than at the endpoint, that may not know of the present one.
  [[nodiscard]] const std::vector<Place>& former_coordinators() const { return former_; }
  /// Without a round that runs: what for, and until when, as the notes say it; empty: nothing.
  [[nodiscard]] std::string waits_for(TimePoint now) const { return notices_.present(now); }
  /// The state of the link: "Answered".
  [[nodiscard]] const char* link_name() const;
  /// Of the round, the link, the workers and the way out, for observers.
  [[nodiscard]] std::array<std::string_view, 4> state_names() const;
  [[nodiscard]] bool ended() const { return way_out_.has_ended(); }
  /// Messages of another round that were dropped.
  [[nodiscard]] std::uint64_t stale() const { return stale_; }

 private:
  enum class LinkEnd : std::uint8_t { kOpen, kGone };  // whether the shell still has the connection
  /// What is known of the coordinator, over all links.
  struct Reach {
    TimePoint lost_at{};    // when it was last heard of, or the start
    TimePoint gone_at{};    // the same, with all time counted
    std::string awaited{};  // what did not answer since then: "etcd h1:2379"
    bool joined = false;
    int attempts = 0;         // since it was lost
    bool loss_noted = false;  // and not yet that it answers again
    std::string cause{};      // why the last attempt failed
    std::string resigned{};   // why its node has left, as it said itself
  };

  // membership_link.cpp
  void on(const LinkUp& up);
  void on(const LinkDown& down);
  void on(const Incoming& incoming);
  void on(const StoreOpened& opened);
  void on(const CoordinatorMoved& moved);
  void on(const CoordinatorAwaited& awaited);
  void on(const ElectionBarred& barred);
  void on(const Tick& tick);
  void connect();
  void lose_link(const std::string& evidence, LinkEnd link_end, LinkLoss loss);
  void note_loss();
  void drop_link(LinkEnd link_end);
  void close_link();
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
  [[nodiscard]] std::optional<TimePoint> next_deadline();

  // The same: another node coordinates.
  void on(const Abdicated& abdicated);
  void look_further(LinkLoss loss, bool had_it);
  void await_last_word(LinkLoss loss);
  void go(CoordinatorSearch::Step step);
  void withdraw();
  void find_coordinator();
  void move_to(Place place);
  void take(const protocol::Settled& settled);
  void take(const protocol::Moved& moved);
  void take(const protocol::Resigned& resigned);
  void take(const protocol::LetGo& let_go);
  [[nodiscard]] Duration attempt_max() const;
  [[nodiscard]] Duration soon() const;

  // membership.cpp
  void on(const GroupRunning& running);
  void on(const GroupSucceeded& succeeded);
  void on(const GroupFailed& failed);
  void on(const GroupGone& gone);
  void on(const FinishedBefore& finished);
  void on(const GroupQuiet& quiet);
  void on(const StoreIdle& idle);
  void on(const LeaveAsked& leave);
  void on(const SignalCame& came);
  void take(const protocol::StartRound& start);
  void take(const protocol::Stop& stop);
  void take(const protocol::Done& done);
  void take(const protocol::Refused& refused);
  [[nodiscard]] bool can_do_without_rank(const protocol::Refused& refused) const;
  void join_without_rank(const protocol::Refused& refused);
  void take(const protocol::Waiting& waiting);
  void take(const protocol::Beat& beat);
  void take(const protocol::PassSignal& passed);
  void take(const protocol::Hang& hang);
  void take_again(const protocol::StartRound& start);
  [[nodiscard]] bool disbelieve(const std::string& what);
  void await_answer_to_leave();
  [[nodiscard]] bool ends_with_success() const;
  void stop_leaving();
  [[nodiscard]] End known_end(End otherwise) const;
  [[nodiscard]] End succeeded_here(const std::string& why_unknown) const;
  void report();
  void answer_stop(protocol::Stopped stopped);
  void stop_group(StopGroup order);
  [[nodiscard]] StopGroup own_stop() const;
  void start_group();
  void end(End verdict);
  void end_if_nothing_left();
  void wait_for_other_ranks();
  [[nodiscard]] bool is_current(Round round) const { return round_ && round == round_->number(); }

  MembershipOptions options_;
  TimePoint start_;
  TimePoint now_;
  Actions actions_;

  link::State link_;
  LinkId link_id_ = 0;
  Reach reach_;
  CoordinatorSearch search_;
  std::optional<Place> where_;  // the coordinator is; none: where the endpoint is
  std::vector<Place> former_;   // where it was, at most kSuccessorsMax
  bool coordinates_ = false;    // here, since it was this node's turn
  bool has_ended_ = false;      // the process there
  bool turned_away_ = false;    // there, without an answer
  std::optional<Place> aside_;  // where that was, while the endpoint is asked
  TimePoint spoke_at_{};        // the last message of a coordinator
  std::optional<TimePoint> armed_;
  bool node_rank_retried_ = false;
  bool was_greeted_ = false;  // a coordinator had said something before the message that is taken

  std::optional<NodeRound> round_;
  Round seen_{0};  // the highest round that any coordinator spoke of
  Group group_;
  Stores stores_;
  Notices notices_;
  WayOut way_out_;
  std::string rest_;  // of the run, as the coordinator has told this node, which leaves it
  enum class SignalOrigin { kHere, kElsewhere };
  SignalMerge<SignalOrigin> signals_;
  std::uint64_t stale_ = 0;
};

}  // namespace ddprun::client

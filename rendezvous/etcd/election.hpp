// Election: who coordinates a run, by one key of etcd that a lease keeps. Pure: no socket, clock or
// log. The shell (elector.hpp) carries out the actions and feeds back what came of them.
//
// A leader acts while now < acts_until(): the sending of the last confirmed renewal, plus the
// lease, minus a margin. Its key cannot be gone before that, so no other process leads. The clock
// counts while this process or the machine sleeps: after a sleep the leader acts no more, before it
// has handled any event.
//
// Every Ask is answered once, by its own event or by Failed. A late or repeated answer is ignored.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "rendezvous/etcd/messages.hpp"

namespace ddprun::etcd {

using RequestId = std::uint64_t;

/// How far a request came that has no answer.
enum class Reach : std::uint8_t {
  kNone,    // no server of etcd accepted a connection
  kServer,  // one did, and did not answer, or said that it cannot
};

struct Looked {
  RequestId id = 0;
  LookAnswer answer{};
};
struct Granted {
  RequestId id = 0;
  GrantAnswer answer{};
};
struct Campaigned {
  RequestId id = 0;
  CampaignAnswer answer{};
};
struct Renewed {
  RequestId id = 0;
  Duration ttl{};  // 0: the lease has expired
};
struct Recorded {
  RequestId id = 0;
  bool leads = true;             // false: nothing was written, this process leads no more
  bool written = true;           // false: the record is another one than this process knew
  Revision record_revision = 0;  // of the one that is there
};
struct Failed {
  RequestId id = 0;
  std::string why;
  Reach reach = Reach::kNone;
  bool refused = false;  // the user, the password or the permission is wrong
};
struct Watched {
  RequestId id = 0;
  std::optional<LeaderKey> key{};
};
struct WatchEnded {
  RequestId id = 0;
  std::string why;
};
/// What is to be known of the run has changed.
struct RecordChanged {
  RunRecord record;
};
/// Lead no more, and do not campaign again.
struct Resign {};
struct Tick {};
using Event = std::variant<Looked, Granted, Campaigned, Renewed, Recorded, Failed, Watched,
                           WatchEnded, RecordChanged, Resign, Tick>;

struct AskLook {
  RequestId id;
};
struct AskGrant {
  RequestId id;
  Duration ttl;
};
struct AskCampaign {
  RequestId id{};
  LeaseId lease{};
  Revision record_revision = 0;  // as last read: with another one the campaign is lost
};
struct AskRenew {
  RequestId id;
  LeaseId lease;
};
struct AskRecord {
  RequestId id = 0;
  Revision term = 0;
  RunRecord record;
  Duration ttl{};
  // As last known: a write before that comes late, though its answer was awaited no longer, does
  // not take the place of a later one.
  Revision record_revision = 0;
};
/// Replaces the watch before.
struct AskWatch {
  RequestId id;
  Revision from;
};
/// etcd has this record.
struct Kept {
  RunRecord record;
};
/// No answer is expected.
struct Revoke {
  LeaseId lease;
};
/// The coordinator is there now; none: it is not known.
struct Follow {
  std::optional<Leader> leader;
};
/// This process coordinates from now on, with what is known of the run.
struct Lead {
  Revision term = 0;
  RunRecord record;
};
/// The leader may act again, after a time in which it could not renew its lease.
struct Act {};
/// This process leads no more.
struct StepDown {};
/// etcd can be reached and does not answer: not the fault of this node.
struct Await {};
struct ArmTimer {
  TimePoint deadline;
};
struct Note {
  std::string text;
};
/// etcd refuses this user: nothing helps but another configuration.
struct Refuse {
  std::string why;
};
/// No process coordinates the run, and this one may not: it asks for other terms.
struct Bar {
  std::string why;
};
using Action =
    std::variant<AskLook, AskGrant, AskCampaign, AskRenew, AskRecord, AskWatch, Kept, Revoke,
                 Follow, Lead, Act, StepDown, Await, ArmTimer, Note, Refuse, Bar>;
using Actions = std::vector<Action>;

// From the end of a run its record stays this long, unless another run of its id begins: longer
// than a node may be without a coordinator (client::kAwaitedMax), so that each hears the verdict.
inline constexpr Duration kOverKept = std::chrono::days(30);
// The record of a run that no process coordinates stays this long, as torchrun's does.
inline constexpr Duration kRecordKept = std::chrono::hours(2);
// The rate of two clocks, and the resolution of etcd's, differ by less.
inline constexpr Duration kMarginMin = std::chrono::milliseconds(400);
inline constexpr Duration kBackoffMin = std::chrono::milliseconds(100);
inline constexpr Duration kBackoffMax = std::chrono::seconds(1);

struct ElectionOptions {
  std::string agent;       // this process
  bool may_lead = true;    // else it only follows
  Duration ttl{};          // of the lease
  Duration jitter{};       // before a campaign, so that of many agents few have to ask
  Duration cut_off_max{};  // a leader that reaches no server for longer steps down
  std::string where;       // "etcd h1:2379,h2:2379", for sentences
  /// Why this process may not coordinate the run of that record; it is pure. Empty: it always may.
  std::function<std::optional<std::string>(const RunRecord&)> bars{};
};

class Election {
 public:
  Election(ElectionOptions options, TimePoint now);

  [[nodiscard]] Actions begin(TimePoint now);
  [[nodiscard]] Actions step(const Event& event, TimePoint now);

  [[nodiscard]] bool leads() const { return state_ == State::kLeading; }
  /// Only while it leads; else the beginning of time.
  [[nodiscard]] TimePoint acts_until() const { return leads() ? acts_until_ : TimePoint{}; }
  /// Whether etcd has the last record.
  [[nodiscard]] bool is_recorded() const { return !leads() || (!record_due_ && !write_.open()); }

 private:
  enum class State : std::uint8_t { kFollowing, kLeading, kResigned };
  /// A question that has no answer yet.
  struct Asked {
    RequestId id = 0;  // 0: none
    TimePoint at{};
    [[nodiscard]] bool open() const { return id != 0; }
  };

  void on(const Looked& looked);
  void on(const Granted& granted);
  void on(const Campaigned& campaigned);
  void on(const Renewed& renewed);
  void on(const Recorded& recorded);
  void on(const Failed& failed);
  void on(const Watched& watched);
  void on(const WatchEnded& ended);
  void on(const RecordChanged& changed);
  void on(const Resign& resign);
  void on(const Tick& tick);

  /// Whether this is the answer to the question, which it then closes.
  bool answers(Asked& asked, RequestId id);
  RequestId ask(Asked& asked);
  void hear();
  void take_key(const std::optional<LeaderKey>& key);
  void take_record(const std::optional<RecordKey>& record);
  [[nodiscard]] bool may_bid() const { return options_.may_lead && !barred_ && !leads(); }
  void say_if_barred();
  void confirm();
  void follow(std::optional<Leader> leader);
  void drop_lease();
  void lead(Revision term, const RunRecord& record);
  void step_down(const std::string& why);
  void notice_lapse();
  void do_what_is_due();
  void note_trouble();
  [[nodiscard]] Duration margin() const;
  [[nodiscard]] Duration backoff();
  [[nodiscard]] bool bids() const { return grant_.open() || campaign_.open(); }
  void arm();

  ElectionOptions options_;
  TimePoint now_;
  Actions actions_;
  State state_ = State::kFollowing;
  RequestId last_id_ = 0;

  std::optional<LeaderKey> key_;  // as last seen
  Revision record_revision_ = 0;
  std::optional<std::string> barred_{};  // why it may not lead
  std::optional<Leader> followed_;       // as last announced
  bool announced_ = false;               // whether anything was

  Asked look_;
  std::optional<TimePoint> look_at_;  // the next one
  RequestId watch_ = 0;

  Asked grant_;
  Asked campaign_;
  std::optional<TimePoint> bid_at_;
  LeaseId lease_ = 0;
  TimePoint lease_asked_{};
  Duration ttl_{};  // of the lease, as granted

  Revision term_ = 0;
  TimePoint acts_until_{};
  bool lapsed_ = false;        // not confirmed in time: etcd is asked for the key, too
  TimePoint renewed_until_{};  // while it has lapsed
  Asked renewal_;
  std::optional<TimePoint> renew_at_;

  RunRecord record_;
  RunRecord written_;  // the last one that etcd was asked to keep
  bool record_due_ = false;
  Asked write_;
  std::optional<TimePoint> write_at_;

  TimePoint contact_;                         // with any server
  std::optional<TimePoint> trouble_since_{};  // no answer since then
  std::string trouble_;
  bool trouble_noted_ = false;
  bool ever_answered_ = false;
  int failures_ = 0;
  std::optional<TimePoint> armed_;
};

}  // namespace ddprun::etcd

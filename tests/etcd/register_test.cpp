// Elections against a register with leases, as etcd is: delays, lost and repeated answers, servers
// that do not answer, processes that sleep. At most one process may act at any time.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>

#include "rendezvous/etcd/election.hpp"
#include "tests/etcd/options.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::etcd;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

class Model {
 public:
  explicit Model(unsigned seed, int processes) : random_(seed) {
    for (int i = 0; i < processes; ++i) {
      ElectionOptions options = options_of("agent" + std::to_string(i));
      options.jitter = milliseconds(10 + 37 * i);
      processes_.push_back(std::make_unique<Process>(Process{Election(options, now_)}));
      take(*processes_.back(), processes_.back()->election.begin(now_));
    }
  }

  void run(Duration time, bool faults) {
    faults_ = faults;
    const TimePoint end = now_ + time;
    while (now_ < end) {
      now_ += milliseconds(chance(50) ? 3 : 25);
      expire();
      if (faults_) disturb();
      deliver();
      check();
    }
  }
  void heal() {
    down_until_ = now_;
    for (const auto& process : processes_) process->asleep_until = now_;
  }
  [[nodiscard]] int acting() const {
    return static_cast<int>(std::count_if(
        processes_.begin(), processes_.end(),
        [this](const auto& process) { return now_ < process->election.acts_until(); }));
  }
  [[nodiscard]] bool all_agree() const {
    return std::all_of(processes_.begin(), processes_.end(), [this](const auto& process) {
      const bool leads = process->election.leads();
      return leads ? key_ && key_->term == process->term : key_ && process->follows == key_->leader;
    });
  }
  [[nodiscard]] int terms() const { return terms_; }

 private:
  struct Process {
    Election election;
    TimePoint asleep_until{};
    std::optional<TimePoint> timer{};
    Revision term = 0;
    std::optional<Leader> follows{};
    RequestId watch = 0;
  };
  struct Message {
    TimePoint at;
    std::uint64_t order;
    std::function<void()> arrive;
    Process* to = nullptr;  // null: to the register
  };

  bool chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  Duration delay() {
    const bool slow = faults_ && chance(5);
    return milliseconds(1 + random_() % (slow ? 4000 : 5));
  }
  void later(Process* to, std::function<void()> arrive) {
    messages_.push_back({now_ + delay(), ++order_, std::move(arrive), to});
  }

  void expire() {
    for (auto it = leases_.begin(); it != leases_.end();) {
      it = it->second < now_ ? end_lease(it) : std::next(it);
    }
  }
  std::map<LeaseId, TimePoint>::iterator end_lease(std::map<LeaseId, TimePoint>::iterator lease) {
    if (key_ && key_->lease == lease->first) set_key(std::nullopt);
    return leases_.erase(lease);
  }
  void set_key(std::optional<LeaderKey> key) {
    key_ = std::move(key);
    ++revision_;
    for (const auto& process : processes_) {
      if (process->watch == 0 || (faults_ && chance(10))) continue;
      feed_later(*process, Watched{process->watch, key_});
    }
  }

  void disturb() {
    if (chance(1) && chance(20)) down_until_ = now_ + milliseconds(random_() % 12'000);
    for (const auto& process : processes_) {
      if (!chance(1) || !chance(10)) continue;
      process->asleep_until = now_ + milliseconds(random_() % 9'000);
    }
  }

  void deliver() {
    std::stable_sort(messages_.begin(), messages_.end(), [](const Message& a, const Message& b) {
      return std::pair(a.at, a.order) < std::pair(b.at, b.order);
    });
    std::vector<Message> now;
    std::vector<Message> rest;
    for (Message& message : messages_) {
      const bool asleep = message.to != nullptr && message.to->asleep_until > now_;
      (message.at <= now_ && !asleep ? now : rest).push_back(std::move(message));
    }
    messages_ = std::move(rest);
    for (const Message& message : now) message.arrive();
    for (const auto& process : processes_) {
      if (!process->timer || *process->timer > now_ || process->asleep_until > now_) continue;
      process->timer.reset();
      take(*process, process->election.step(Tick{}, now_));
    }
  }
  void feed_later(Process& process, Event event) {
    later(&process, [this, &process, event] { take(process, process.election.step(event, now_)); });
  }

  /// A question: the register handles it when it arrives, and its answer may be lost, or come
  /// twice.
  template <class Handle>
  void ask(Process& process, RequestId id, Handle handle) {
    feed_at(process, now_ + seconds(2), Failed{id, "no answer", Reach::kServer});
    if (faults_ && chance(5)) return;
    later(nullptr, [this, &process, handle, id] {
      if (now_ < down_until_) return feed_later(process, Failed{id, "no leader", Reach::kServer});
      const Event answer = handle();
      if (faults_ && chance(5)) return;
      feed_later(process, answer);
      if (faults_ && chance(5)) feed_later(process, answer);
    });
  }
  void feed_at(Process& process, TimePoint at, Event event) {
    messages_.push_back(
        {at, ++order_,
         [this, &process, event] { take(process, process.election.step(event, now_)); }, &process});
  }

  void take(Process& process, const Actions& actions) {
    for (const Action& action : actions) {
      std::visit([&](const auto& one) { act(process, one); }, action);
    }
  }
  void act(Process& process, const AskLook& look) {
    ask(process, look.id, [this, look] { return Looked{look.id, {key_, revision_}}; });
  }
  void act(Process& process, const AskGrant& grant) {
    ask(process, grant.id, [this, grant] {
      leases_[++last_lease_] = now_ + grant.ttl;
      return Granted{grant.id, {last_lease_, grant.ttl}};
    });
  }
  void act(Process& process, const AskCampaign& campaign) {
    const std::string& agent = name_of(process);
    ask(process, campaign.id, [this, campaign, agent] {
      CampaignAnswer answer;
      if (!key_ && leases_.contains(campaign.lease)) {
        set_key(LeaderKey{{agent, "10.0.0.1", 1}, revision_ + 1, campaign.lease});
        answer.won = true;
        ++terms_;
      }
      if (!answer.won) answer.key = key_;
      answer.revision = revision_;
      return Campaigned{campaign.id, answer};
    });
  }
  void act(Process& process, const AskRenew& renew) {
    ask(process, renew.id, [this, renew] {
      const auto lease = leases_.find(renew.lease);
      if (lease == leases_.end()) return Renewed{renew.id, Duration(0)};
      lease->second = now_ + kTtl;
      return Renewed{renew.id, kTtl};
    });
  }
  void act(Process& process, const AskRecord& record) {
    ask(process, record.id, [this, record] {
      return Recorded{record.id, key_ && key_->term == record.term};
    });
  }
  void act(Process& /*process*/, const Revoke& revoke) {
    if (faults_ && chance(20)) return;
    later(nullptr, [this, revoke] {
      if (now_ < down_until_) return;
      const auto lease = leases_.find(revoke.lease);
      if (lease != leases_.end()) end_lease(lease);
    });
  }
  void act(Process& process, const AskWatch& watch) { process.watch = watch.id; }
  void act(Process& process, const Follow& follow) { process.follows = follow.leader; }
  void act(Process& process, const Lead& lead) { process.term = lead.term; }
  void act(Process& process, const ArmTimer& timer) { process.timer = timer.deadline; }
  template <class Other>
  void act(Process& /*process*/, const Other& /*other*/) {}

  const std::string& name_of(const Process& process) {
    const auto found = std::find_if(processes_.begin(), processes_.end(),
                                    [&](const auto& one) { return one.get() == &process; });
    return names_[static_cast<std::size_t>(found - processes_.begin())];
  }

  void check() const {
    if (acting() > 1) FAIL("two processes act");
    const auto leader =
        std::find_if(processes_.begin(), processes_.end(),
                     [this](const auto& process) { return now_ < process->election.acts_until(); });
    if (leader == processes_.end()) return;
    if (!key_ || key_->term != (*leader)->term) FAIL("a process acts without the key");
  }

  std::mt19937 random_;
  TimePoint now_{seconds(1000)};
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::string> names_{"agent0", "agent1", "agent2", "agent3", "agent4"};
  std::vector<Message> messages_;
  std::uint64_t order_ = 0;
  bool faults_ = true;
  TimePoint down_until_{};
  std::map<LeaseId, TimePoint> leases_;
  LeaseId last_lease_ = 0;
  std::optional<LeaderKey> key_;
  Revision revision_ = 1;
  int terms_ = 0;
};

}  // namespace

TEST_CASE("at most one process acts, whatever is delayed, lost, repeated, asleep or down") {
  int terms = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    Model model(seed, 2 + static_cast<int>(seed % 4));
    model.run(seconds(120), true);
    model.heal();
    model.run(seconds(40), false);
    CHECK(model.acting() == 1);
    CHECK(model.all_agree());
    terms += model.terms();
  }
  CHECK(terms > 100);  // leaders do change
}

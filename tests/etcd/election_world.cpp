#include "tests/etcd/election_world.hpp"

#include <algorithm>
#include <utility>

namespace ddprun::etcd {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct ElectionWorld::Process {
  std::string name;
  std::string terms;  // which it asks for
  std::unique_ptr<Election> election{};
  int life = 0;
  TimePoint asleep_until{};
  TimePoint cut_until{};
  std::optional<TimePoint> timer{};
  std::optional<Leader> follows{};
  RequestId watch = 0;
  // While it leads:
  Revision term = 0;
  RunRecord record{};
  bool verdict_waits = false;
  std::optional<TimePoint> govern_at{};
};

ElectionWorld::ElectionWorld(unsigned seed, int processes) : random_(seed) {
  for (int i = 0; i < processes; ++i) {
    processes_.push_back(std::make_unique<Process>());
    processes_.back()->name = "agent" + std::to_string(i);
    processes_.back()->terms = chance(20) ? "other" : "usual";
    begin(*processes_.back());
  }
}

ElectionWorld::~ElectionWorld() = default;

Duration ElectionWorld::up_to(milliseconds most) {
  return milliseconds(random_() % static_cast<unsigned>(most.count()));
}

/// A new process: it has nothing of the one before but the place.
void ElectionWorld::begin(Process& process) {
  ++process.life;
  ElectionOptions options = options_of(process.name + "." + std::to_string(process.life));
  options.jitter = up_to(milliseconds(100));
  options.bars = [terms = process.terms](const RunRecord& record) {
    const bool other = !record.over && record.agreed && record.agreed->host != terms;
    return other ? std::optional<std::string>("other terms") : std::nullopt;
  };
  process.election = std::make_unique<Election>(std::move(options), now_);
  process.timer.reset();
  process.govern_at.reset();
  process.follows.reset();
  process.watch = 0;
  process.term = 0;
  process.verdict_waits = false;
  take(process, process.election->begin(now_));
}

void ElectionWorld::at(TimePoint when, Message message) {
  if (message.to != nullptr) message.life = message.to->life;
  messages_.emplace(when, std::move(message));
}

void ElectionWorld::feed(Process& process, const Event& event) {
  take(process, process.election->step(event, now_));
}

void ElectionWorld::feed_later(Process& process, const Event& event) {
  const Duration delay = up_to(milliseconds(faults_ && chance(5) ? 4000 : 5));
  at(now_ + delay, {[this, &process, event] { feed(process, event); }, &process});
}

void ElectionWorld::run(Duration time, bool faults) {
  faults_ = faults;
  disturb_at_ = now_ + up_to(milliseconds(500));
  const TimePoint end = now_ + time;
  while (now_ < end && broken_.empty()) step(end);
}

void ElectionWorld::heal() {
  down_until_ = now_;
  for (const auto& process : processes_) process->asleep_until = process->cut_until = now_;
}

TimePoint ElectionWorld::next_time() const {
  TimePoint next = disturb_at_;
  if (!messages_.empty()) next = std::min(next, messages_.begin()->first);
  if (const auto expiry = register_.next_expiry()) {
    next = std::min(next, *expiry + milliseconds(1));
  }
  for (const auto& process : processes_) {
    const auto awake = [&process](TimePoint due) { return std::max(due, process->asleep_until); };
    if (process->timer) next = std::min(next, awake(*process->timer));
    if (process->govern_at) next = std::min(next, awake(*process->govern_at));
  }
  return next;
}

void ElectionWorld::step(TimePoint until) {
  now_ = std::min(until, std::max(now_, next_time()));
  if (register_.advance(now_)) tell_watchers();
  if (now_ >= disturb_at_) disturb();
  while (!messages_.empty() && messages_.begin()->first <= now_) {
    Message message = std::move(messages_.extract(messages_.begin()).mapped());
    if (message.to != nullptr && message.life != message.to->life) continue;
    if (message.to != nullptr && message.to->asleep_until > now_) {
      messages_.emplace(message.to->asleep_until, std::move(message));
      continue;
    }
    message.arrive();
    check();
  }
  for (const auto& process : processes_) {
    if (process->asleep_until > now_) continue;
    if (process->timer && *process->timer <= now_) {
      process->timer.reset();
      feed(*process, Tick{});
    }
    if (process->govern_at && *process->govern_at <= now_) govern(*process);
    check();
  }
}

void ElectionWorld::disturb() {
  disturb_at_ = now_ + up_to(milliseconds(2000)) + milliseconds(1);
  if (!faults_) return;
  if (chance(10)) down_until_ = now_ + up_to(milliseconds(12'000));
  Process& process = *processes_[random_() % processes_.size()];
  if (chance(15)) process.asleep_until = now_ + up_to(milliseconds(9'000));
  if (chance(15)) process.cut_until = now_ + up_to(milliseconds(15'000));
  if (chance(5)) begin(process);  // killed, and started again
  if (chance(5)) {
    feed(process, Resign{});
    process.govern_at.reset();
    process.verdict_waits = false;
    at(now_ + up_to(milliseconds(3'000)), {[this, &process] { begin(process); }, &process});
  }
}

void ElectionWorld::tell_watchers() {
  for (const auto& process : processes_) {
    if (process->watch == 0) continue;
    if (process->cut_until > now_ || (faults_ && chance(10))) continue;
    feed_later(*process, Watched{process->watch, register_.key()});
  }
}

/// The register handles a question when it arrives; the answer may be lost, or come twice.
template <class Handle>
void ElectionWorld::ask(Process& process, RequestId id, Handle handle) {
  const bool cut = process.cut_until > now_;
  const Failed none{id, "no answer", cut ? Reach::kNone : Reach::kServer};
  at(now_ + seconds(2), {[this, &process, none] { feed(process, none); }, &process});
  if (cut || (faults_ && chance(5))) return;
  const Duration delay = up_to(milliseconds(faults_ && chance(5) ? 4000 : 5));
  const int life = process.life;
  at(now_ + delay, {[this, &process, life, handle, id] {
       const bool there = life == process.life;
       if (now_ < down_until_) {
         if (there) feed_later(process, Failed{id, "no leader", Reach::kServer});
         return;
       }
       const auto before = register_.key();
       const Event answer = handle();
       if (before != register_.key()) tell_watchers();
       if (!there || process.cut_until > now_ || (faults_ && chance(5))) return;
       feed_later(process, answer);
       if (faults_ && chance(5)) feed_later(process, answer);
     }});
}

void ElectionWorld::take(Process& process, const Actions& actions) {
  const int life = process.life;
  for (const Action& action : actions) {
    if (life != process.life) return;
    std::visit([&](const auto& one) { act(process, one); }, action);
  }
}

void ElectionWorld::act(Process& process, const AskLook& look) {
  ask(process, look.id, [this, look] { return Looked{look.id, register_.look()}; });
}

void ElectionWorld::act(Process& process, const AskGrant& grant) {
  ask(process, grant.id, [this, grant] { return Granted{grant.id, register_.grant(grant.ttl)}; });
}

void ElectionWorld::act(Process& process, const AskCampaign& campaign) {
  const std::string name = process.name + "." + std::to_string(process.life);
  ask(process, campaign.id, [this, campaign, name] {
    return Campaigned{campaign.id, register_.campaign(campaign, name)};
  });
}

void ElectionWorld::act(Process& process, const AskRenew& renew) {
  ask(process, renew.id, [this, renew] {
    return Renewed{renew.id, register_.renew(renew.lease, kTtl)};
  });
}

void ElectionWorld::act(Process& process, const AskRecord& record) {
  ask(process, record.id, [this, record] { return register_.write(record); });
}

void ElectionWorld::act(Process& process, const AskWatch& watch) {
  process.watch = watch.id;
  if (faults_ && chance(20))
    feed_later(process, WatchEnded{watch.id, "the revision was compacted"});
}

void ElectionWorld::act(Process& process, const Revoke& revoke) {
  if (process.cut_until > now_ || (faults_ && chance(20))) return;
  at(now_ + up_to(milliseconds(5)), {[this, revoke] {
       if (now_ < down_until_) return;
       const auto before = register_.key();
       register_.revoke(revoke.lease);
       if (before != register_.key()) tell_watchers();
     }});
}

void ElectionWorld::act(Process& process, const Follow& follow) {
  process.follows = follow.leader;
}

void ElectionWorld::act(Process& process, const Lead& lead) {
  check_lead(process, lead);
  ++leaders_;
  last_term_ = std::max(last_term_, lead.term);
  last_round_ = std::max(last_round_, lead.record.round);
  process.term = lead.term;
  process.record = lead.record;
  process.verdict_waits = false;
  process.govern_at = now_ + up_to(milliseconds(1'000));
}

void ElectionWorld::act(Process& process, const StepDown&) {
  process.govern_at.reset();
  process.verdict_waits = false;
}

void ElectionWorld::act(Process& process, const ArmTimer& timer) {
  process.timer = timer.deadline;
}

/// Its user starts it again with the terms of the run.
void ElectionWorld::act(Process& process, const Bar&) {
  ++barred_;
  process.terms = process.terms == "usual" ? "other" : "usual";
  at(now_ + up_to(milliseconds(1'000)), {[this, &process] { begin(process); }, &process});
}

/// Only now the agents hear a verdict.
void ElectionWorld::act(Process& process, const Kept& kept) {
  if (!process.verdict_waits || kept.record != process.record) return;
  process.verdict_waits = false;
  announced_.insert(kept.record.over->exit_code);
}

/// What the run of a leader does next, if it may act.
void ElectionWorld::govern(Process& process) {
  process.govern_at = now_ + up_to(milliseconds(4'000)) + milliseconds(1);
  if (now_ >= process.election->acts_until() || process.verdict_waits) return;
  RunRecord& record = process.record;
  if (record.over) {
    if (!chance(30)) return;  // late agents come and go
    record.before.push_back({record.round, *record.over});
    record.over.reset();
    record.agreed.reset();
  } else if (record.agreed && chance(15)) {
    record.over = RunRecord::Verdict{++last_code_, "it failed", 2, process.term};
    process.verdict_waits = true;
    return feed(process, RecordChanged{record});
  }
  ++record.round;
  if (!record.agreed) {
    record.agreed = RunRecord::Agreed{};
    record.agreed->host = process.terms;
  }
  feed(process, RecordChanged{record});
}

int ElectionWorld::acting() const {
  return static_cast<int>(std::count_if(
      processes_.begin(), processes_.end(),
      [this](const auto& process) { return now_ < process->election->acts_until(); }));
}

bool ElectionWorld::all_agree() const {
  const auto& key = register_.key();
  return key && std::all_of(processes_.begin(), processes_.end(), [&key](const auto& process) {
           if (process->election->leads()) return key->term == process->term;
           return process->follows == key->leader;
         });
}

void ElectionWorld::fail(const std::string& promise) {
  if (broken_.empty()) broken_ = promise;
}

void ElectionWorld::check() {
  if (acting() > 1) fail("two processes act");
  for (const auto& process : processes_) {
    if (now_ >= process->election->acts_until()) continue;
    const auto& key = register_.key();
    if (!key || key->term != process->term) fail("a process acts without the key");
  }
}

void ElectionWorld::check_lead(const Process& process, const Lead& lead) {
  if (lead.term <= last_term_) fail("a term is not above the one before");
  const RunRecord& record = lead.record;
  const bool lives = !record.over && record.agreed;
  if (lives && record.agreed->host != process.terms) fail("a process leads with other terms");
  for (const int code : announced_) {
    const bool last = record.over && record.over->exit_code == code;
    const bool earlier =
        std::any_of(record.before.begin(), record.before.end(),
                    [code](const auto& one) { return one.verdict.exit_code == code; });
    if (!last && !earlier) fail("a verdict that agents have heard is forgotten");
  }
}

}  // namespace ddprun::etcd

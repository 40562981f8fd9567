#include "rendezvous/etcd/election.hpp"

#include <algorithm>
#include <utility>

#include "base/format.hpp"

namespace ddprun::etcd {

Election::Election(ElectionOptions options, TimePoint now)
    : options_(std::move(options)), now_(now), ttl_(options_.ttl), contact_(now) {}

Actions Election::begin(TimePoint now) {
  now_ = std::max(now_, now);
  look_at_ = now_;
  follow(std::nullopt);
  do_what_is_due();
  arm();
  return std::exchange(actions_, {});
}

Actions Election::step(const Event& event, TimePoint now) {
  if (state_ == State::kResigned) return {};
  now_ = std::max(now_, now);
  actions_.clear();
  notice_lapse();
  std::visit([this](const auto& alternative) { on(alternative); }, event);
  if (state_ != State::kResigned) {
    do_what_is_due();
    note_trouble();
    arm();
  }
  return std::exchange(actions_, {});
}

bool Election::answers(Asked& asked, RequestId id) {
  if (!asked.open() || asked.id != id) return false;
  asked.id = 0;
  return true;
}

RequestId Election::ask(Asked& asked) {
  asked = {++last_id_, now_};
  return last_id_;
}

// etcd answered.
void Election::hear() {
  contact_ = now_;
  ever_answered_ = true;
  failures_ = 0;
  if (!trouble_since_) return;
  const Duration lasted = now_ - *std::exchange(trouble_since_, std::nullopt);
  if (!std::exchange(trouble_noted_, false)) return;
  actions_.emplace_back(Note{options_.where + " answers again after " + duration_text(lasted)});
}

void Election::on(const Looked& looked) {
  if (!answers(look_, looked.id)) return;
  hear();
  // A watch that has died unnoticed is replaced by the next look but one.
  look_at_ = now_ + (leads() ? ttl_ : 3 * ttl_);
  if (!leads()) take_record(looked.answer.record);
  take_key(looked.answer.key);
  if (leads()) {
    confirm();
  } else {
    say_if_barred();
  }
  if (watch_ != 0) return;
  watch_ = ++last_id_;
  actions_.emplace_back(AskWatch{watch_, looked.answer.revision + 1});
}

void Election::take_key(const std::optional<LeaderKey>& key) {
  if (leads()) {
    if (key && key->term == term_) return;
    step_down(key ? "another node has taken over" : "its key in etcd is gone");
  }
  key_ = key;
  if (!key) {
    follow(std::nullopt);
    if (may_bid() && !bids() && !bid_at_) bid_at_ = now_ + options_.jitter;
    return;
  }
  bid_at_.reset();
  if (key->leader.agent == options_.agent) {
    // Of a campaign whose answer was lost: what is known of the run was lost with it.
    if (campaign_.open()) return;
    follow(std::nullopt);
    actions_.emplace_back(Revoke{key->lease});
    lease_ = 0;
    look_at_ = now_ + backoff();
    return;
  }
  if (!bids()) drop_lease();
  follow(key->leader);
}

/// A process that coordinates a run has to agree with its terms.
void Election::take_record(const std::optional<RecordKey>& record) {
  record_revision_ = record ? record->revision : 0;
  barred_.reset();
  if (record && options_.bars) barred_ = options_.bars(record->record);
  if (barred_) bid_at_.reset();
}

/// What was read just now says so, and no coordinator could.
void Election::say_if_barred() {
  if (options_.may_lead && barred_ && !key_) actions_.emplace_back(Bar{*barred_});
}

void Election::follow(std::optional<Leader> leader) {
  if (std::exchange(announced_, true) && followed_ == leader) return;
  followed_ = leader;
  actions_.emplace_back(Follow{std::move(leader)});
}

void Election::drop_lease() {
  if (lease_ != 0) actions_.emplace_back(Revoke{std::exchange(lease_, 0)});
}

void Election::on(const Granted& granted) {
  const TimePoint asked = grant_.at;
  if (!answers(grant_, granted.id)) return;
  hear();
  lease_ = granted.answer.lease;
  ttl_ = granted.answer.ttl;
  lease_asked_ = asked;
  if (key_ || !may_bid()) return drop_lease();
  actions_.emplace_back(AskCampaign{ask(campaign_), lease_, record_revision_});
}

void Election::on(const Campaigned& campaigned) {
  if (!answers(campaign_, campaigned.id)) return;
  hear();
  const CampaignAnswer& answer = campaigned.answer;
  if (answer.won && now_ >= lease_asked_ + ttl_ - margin()) {  // too late: another one may lead
    drop_lease();
    look_at_ = now_;
    return;
  }
  if (answer.won) {
    record_revision_ = answer.record ? answer.record->revision : 0;
    return lead(answer.revision, answer.record.value_or(RecordKey{}).record);
  }
  const Revision before = record_revision_;
  take_record(answer.record);
  // A coordinator has been there since the last look: what it left is known by now.
  if (!answer.key && may_bid() && record_revision_ != before) {
    actions_.emplace_back(AskCampaign{ask(campaign_), lease_, record_revision_});
    return;
  }
  take_key(answer.key);
  say_if_barred();
}

void Election::lead(Revision term, const RunRecord& record) {
  state_ = State::kLeading;
  term_ = term;
  acts_until_ = lease_asked_ + ttl_ - margin();
  lapsed_ = false;
  renew_at_ = lease_asked_ + ttl_ / 3;
  look_at_ = now_ + ttl_;
  bid_at_.reset();
  followed_.reset();  // the shell goes to its own address
  record_ = record;
  // What a run has left that is not over is kept on, by this coordinator.
  record_due_ = !(record == RunRecord{}) && !record.over;
  write_at_ = record_due_ ? std::optional(now_) : std::nullopt;
  actions_.emplace_back(Lead{term, record});
}

// The process was stopped, or etcd did not answer: another process may lead soon.
void Election::notice_lapse() {
  if (!leads() || lapsed_ || now_ < acts_until_) return;
  lapsed_ = true;
  renewed_until_ = {};
}

void Election::on(const Renewed& renewed) {
  const TimePoint asked = renewal_.at;
  if (!answers(renewal_, renewed.id)) return;
  hear();
  if (!leads()) return;
  if (renewed.ttl == Duration(0)) {
    step_down("its lease in etcd expired");
    look_at_ = now_;
    return;
  }
  ttl_ = renewed.ttl;
  renew_at_ = asked + ttl_ / 3;
  const TimePoint until = asked + ttl_ - margin();
  if (!lapsed_) {
    acts_until_ = std::max(acts_until_, until);
    return;
  }
  // A server that slept itself can renew what the others have ended: the key is read, too.
  renewed_until_ = std::max(renewed_until_, until);
  look_at_ = now_;
}

/// The key is still this process's, after a lapse.
void Election::confirm() {
  if (!lapsed_ || now_ >= renewed_until_) return;
  lapsed_ = false;
  acts_until_ = renewed_until_;
  actions_.emplace_back(Act{});
}

void Election::step_down(const std::string& why) {
  state_ = State::kFollowing;
  term_ = 0;
  renewal_.id = write_.id = 0;
  renew_at_.reset();
  write_at_.reset();
  key_.reset();
  actions_.emplace_back(StepDown{});
  actions_.emplace_back(Note{"this node coordinates no more: " + why});
  drop_lease();
}

void Election::on(const Recorded& recorded) {
  if (!answers(write_, recorded.id)) return;
  hear();
  if (!leads()) return;
  if (!recorded.leads) {
    step_down("another node has taken over");
    look_at_ = now_;
    return;
  }
  record_revision_ = recorded.record_revision;
  if (!recorded.written) {
    record_due_ = true;
    write_at_ = now_;
  }
  if (record_due_) return;
  write_at_ = now_ + kRecordKept / 2;  // it has to be renewed
  actions_.emplace_back(Kept{written_});
}

void Election::on(const RecordChanged& changed) {
  record_ = changed.record;
  record_due_ = true;
  write_at_ = now_;
}

void Election::on(const Failed& failed) {
  const bool known = answers(look_, failed.id) || answers(grant_, failed.id) ||
                     answers(campaign_, failed.id) || answers(renewal_, failed.id);
  const bool wrote = !known && answers(write_, failed.id);
  if (!known && !wrote) return;
  if (failed.refused && !ever_answered_) {
    actions_.emplace_back(Refuse{failed.why});
    return;
  }
  if (failed.reach == Reach::kServer) contact_ = now_;
  if (!trouble_since_) trouble_since_ = now_;
  trouble_ = failed.why;
  const Duration pause = backoff();
  if (wrote) {
    record_due_ = true;
    write_at_ = now_ + pause;
  }
  look_at_ = std::min(look_at_.value_or(TimePoint::max()), now_ + pause);
  if (leads() && !renewal_.open()) {
    renew_at_ = std::min(renew_at_.value_or(TimePoint::max()), now_ + pause);
  }
  if (failed.reach == Reach::kServer) actions_.emplace_back(Await{});
  if (leads() && now_ - contact_ >= options_.cut_off_max) {
    step_down("it has not reached " + options_.where + " for " +
              duration_text(options_.cut_off_max) + " (--rdzv-conf coordinator_timeout)");
  }
}

void Election::on(const Watched& watched) {
  if (watched.id != watch_) return;
  take_key(watched.key);
  if (!watched.key && barred_) look_at_ = now_;  // the run may be over by now
}

void Election::on(const WatchEnded& ended) {
  if (ended.id != watch_) return;
  watch_ = 0;
  look_at_ = std::min(look_at_.value_or(TimePoint::max()), now_ + backoff());
}

void Election::on(const Resign&) {
  if (leads()) actions_.emplace_back(StepDown{});
  drop_lease();
  state_ = State::kResigned;
}

void Election::on(const Tick&) {}

void Election::do_what_is_due() {
  const auto due = [this](std::optional<TimePoint>& at) {
    if (!at || now_ < *at) return false;
    at.reset();
    return true;
  };
  if (!look_.open() && due(look_at_)) actions_.emplace_back(AskLook{ask(look_)});
  if (!bids() && due(bid_at_) && !leads() && !key_) {
    drop_lease();
    actions_.emplace_back(AskGrant{ask(grant_), options_.ttl});
  }
  if (!leads()) return;
  if (!renewal_.open() && due(renew_at_)) actions_.emplace_back(AskRenew{ask(renewal_), lease_});
  if (!write_.open() && due(write_at_)) {
    record_due_ = false;
    const Duration kept = record_.over ? kOverKept : kRecordKept;
    written_ = record_;
    actions_.emplace_back(AskRecord{ask(write_), term_, record_, kept, record_revision_});
  }
}

// Once, and not for what is over soon.
void Election::note_trouble() {
  if (!trouble_since_ || trouble_noted_ || now_ < *trouble_since_ + options_.ttl) return;
  trouble_noted_ = true;
  actions_.emplace_back(
      Note{options_.where + " does not answer (" + trouble_ +
           "): workers keep running; restarts, and nodes that join, wait until it does"});
}

Duration Election::margin() const {
  return std::max<Duration>(kMarginMin, ttl_ / 5);
}

Duration Election::backoff() {
  return std::min(kBackoffMax, kBackoffMin * (1 << std::min(failures_++, 5)));
}

void Election::arm() {
  std::optional<TimePoint> next;
  const auto take = [&next](std::optional<TimePoint> at) {
    if (at && (!next || *at < *next)) next = at;
  };
  if (!look_.open()) take(look_at_);
  if (!bids()) take(bid_at_);
  if (trouble_since_ && !trouble_noted_) take(*trouble_since_ + options_.ttl);
  if (leads()) {
    if (!renewal_.open()) take(renew_at_);
    if (!write_.open()) take(write_at_);
    if (!lapsed_) take(acts_until_);
  }
  if (!next || (armed_ && *armed_ > now_ && *armed_ <= *next)) return;
  armed_ = next;
  actions_.emplace_back(ArmTimer{*next});
}

}  // namespace ddprun::etcd

// Register: etcd as the elections use it: a key that a lease keeps, and a record that only the
// key's owner writes. It is never wrong; delays and losses are those of its users.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "rendezvous/etcd/election.hpp"

namespace ddprun::etcd {

class Register {
 public:
  /// Leases that have expired by now end; returns whether the key went with one.
  bool advance(TimePoint now) {
    now_ = now;
    const auto before = key_;
    for (auto it = leases_.begin(); it != leases_.end();) {
      it = it->second < now ? end_lease(it) : std::next(it);
    }
    return before != key_;
  }
  /// When the next lease expires; none: never.
  [[nodiscard]] std::optional<TimePoint> next_expiry() const {
    std::optional<TimePoint> next;
    for (const auto& [lease, until] : leases_) next = next ? std::min(*next, until) : until;
    return next;
  }
  [[nodiscard]] const std::optional<LeaderKey>& key() const { return key_; }
  [[nodiscard]] const std::optional<RecordKey>& record() const { return record_; }

  LookAnswer look() { return {key_, revision_, record_}; }
  GrantAnswer grant(Duration ttl) {
    leases_[++last_lease_] = now_ + ttl;
    return {last_lease_, ttl};
  }
  CampaignAnswer campaign(const AskCampaign& ask, const std::string& agent) {
    const Revision known = record_ ? record_->revision : 0;
    CampaignAnswer answer;
    answer.won = !key_ && leases_.contains(ask.lease) && known == ask.record_revision;
    if (answer.won) key_ = LeaderKey{{agent, "10.0.0.1", 1}, ++revision_, ask.lease};
    if (!answer.won) answer.key = key_;
    answer.record = record_;
    answer.revision = revision_;
    return answer;
  }
  Duration renew(LeaseId lease, Duration ttl) {
    const auto found = leases_.find(lease);
    if (found == leases_.end()) return Duration(0);
    found->second = now_ + ttl;
    return ttl;
  }
  Recorded write(const AskRecord& ask) {
    const bool leads = key_ && key_->term == ask.term;
    const bool written = leads && ask.record_revision == (record_ ? record_->revision : 0);
    if (written) record_ = RecordKey{ask.record, ++revision_};
    return {ask.id, leads, written, record_ ? record_->revision : 0};
  }
  void revoke(LeaseId lease) {
    const auto found = leases_.find(lease);
    if (found != leases_.end()) end_lease(found);
  }

 private:
  std::map<LeaseId, TimePoint>::iterator end_lease(std::map<LeaseId, TimePoint>::iterator lease) {
    if (key_ && key_->lease == lease->first) {
      key_.reset();
      ++revision_;
    }
    return leases_.erase(lease);
  }

  TimePoint now_{};
  std::map<LeaseId, TimePoint> leases_;
  LeaseId last_lease_ = 0;
  std::optional<LeaderKey> key_;
  std::optional<RecordKey> record_;
  Revision revision_ = 1;
};

}  // namespace ddprun::etcd

#include "rendezvous/round/agreement.hpp"

#include <algorithm>
#include <utility>

#include "rendezvous/round/reasons.hpp"
#include "rendezvous/round/record.hpp"

namespace ddprun::round {

using namespace protocol;

Agreement::Agreement(RunId run, std::optional<RunRecord> record)
    : run_(std::move(run)), record_(std::move(record)) {
  if (record_) ended_ = ended_runs(*record_);
}

RunTerms Agreement::first_for(const Hello& hello) const {
  RunTerms own{hello.run_id, hello.terms, hello.fingerprint, hello.command, hello.host, ""};
  if (!continues_record()) return own;
  return standing_terms(run_, *record_).value_or(std::move(own));
}

RestartCount Agreement::restarts_before() const {
  return RestartCount(continues_record() ? record_->restarts : 0);
}

void Agreement::take(const Hello& hello, const Peer& peer) {
  RunTerms agreed = first_for(hello);
  if (hello.heard_of() == Round(0)) agreed.terms = hello.terms;
  if (agreed.host == hello.host) agreed.address = peer.address;
  if (hello.fingerprint == agreed.fingerprint) agreed.command = hello.command;
  agreed_ = std::move(agreed);
}

void Agreement::begin_new_run(const Hello& hello) {
  is_other_command_ = record_ && is_of_other_command(*record_, hello);
  versions_.clear();
}

std::string Agreement::compare_version(const Hello& hello) {
  const bool known =
      std::find(versions_.begin(), versions_.end(), hello.version) != versions_.end();
  if (known || versions_.size() >= kVersionsMax) return "";
  versions_.push_back(hello.version);
  if (versions_.size() == 1) return "";
  return reasons::another_version(hello.host, hello.version, versions_.front());
}

}  // namespace ddprun::round

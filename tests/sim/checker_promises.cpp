// What a run promises its users, against what the world did to it: who may be taken for lost, when
// the store may close, what code an agent may end with.
#include "rendezvous/round/run.hpp"
#include "tests/sim/checker.hpp"
#include "tests/sim/network.hpp"

namespace ddprun::sim {

using namespace protocol;

namespace {

// Beyond the limit of silence: to come back after a fault, with the slowest wires and clocks.
constexpr Duration kReturnMax = client::kConnectMax + seconds(5);
// Workers' clocks and the coordinator's differ.
constexpr double kSlowestClock = 0.85;

}  // namespace

void Checker::promised(std::string_view name, bool holds, const std::string& sentence) {
  if (holds) return;
  const auto known = std::find(kKnownViolations.begin(), kKnownViolations.end(), name);
  const bool fatal = known == kKnownViolations.end() || strict_ == name || strict_ == "all";
  if (fatal) throw Violation(std::string(name) + ": " + sentence);
  ++known_[*known];
}

void Checker::excuse(int process, TimePoint until) {
  only_suspended_ = false;
  extend_excuse(process, until);
}

void Checker::on_suspended(int process, TimePoint until) {
  extend_excuse(process, until);
}

void Checker::extend_excuse(int process, TimePoint until) {
  excuses_[process] = std::max(until, unread_until_) + terms_.silence_max() + kReturnMax;
}

// It learns afterwards what happened meanwhile, or just before.
void Checker::on_coordinator_paused(TimePoint now, TimePoint until) {
  unread_until_ = until;
  for (auto& [process, end] : excuses_) {
    if (end >= now) extend_excuse(process, std::max(end, until));
  }
  // An agent that leaves waits a few seconds for the verdict.
  for (const auto& [process, when] : signalled_) extend_excuse(process, until);
}

bool Checker::excused(int process, TimePoint now) const {
  const auto found = excuses_.find(process);
  return found != excuses_.end() && now <= found->second;
}

bool Checker::anybody_excused_since(TimePoint when) const {
  return std::any_of(excuses_.begin(), excuses_.end(),
                     [when](const auto& one) { return one.second >= when; });
}

// A round ends because a worker failed, because a node came, or because one could not be
// reached; and only those who could not are missing from the next one.
void Checker::check_cause(const Formed& before, const Formed& after) {
  const bool settled = before.told.size() == before.members.size();
  if (!settled || before.failed || before.given_up) return;
  check_silence(before, after);
  const bool quiet = !anybody_excused_since(before.at);
  const auto stays = [&before](const Member& member) { return before.has(member.process); };
  const bool somebody_came = !std::all_of(after.members.begin(), after.members.end(), stays);
  // A coordinator that started empty knows those who came to it first.
  const bool knew =
      before.members.front().start.stamp.author == after.members.front().start.stamp.author;
  if (!knew && (!quiet || somebody_came)) return;
  const std::string round = std::to_string(after.members.front().start.stamp.number.value());
  bool somebody_went = false;
  for (const Member& member : before.members) {
    if (after.has(member.process)) continue;
    somebody_went = true;
    const bool gone = excused(member.process, after.at) || gone_.count(member.process) != 0;
    promised(promise::kNoHealthyNodeLost, gone,
             "process " + std::to_string(member.process) +
                 " was up and reachable and is not in round " + round);
  }
  promised(promise::kNoHealthyNodeLost, !quiet || somebody_came || somebody_went,
           "round " + round + " starts everything again although no node was lost, came or failed");
}

// The next round could only have been the same one.
void Checker::check_silence(const Formed& before, const Formed& after) {
  const bool smallest = static_cast<int>(before.members.size()) == terms_.nodes_min;
  const bool undisturbed = only_suspended_ && gone_.empty() && signalled_.empty() &&
                           !coordinator_lost_ && failed_rounds_ == 0;
  promised(promise::kSilenceIsBorne,
           !smallest || !undisturbed || before.processes != after.processes,
           "round " + std::to_string(after.members.front().start.stamp.number.value()) +
               " starts all ranks again, and agents were suspended at most");
}

// The coordinator has not read of a success that all ranks have had, and a member that could tell
// of it cannot be reached: it is rightly missed, and the run continues.
void Checker::forget_success_without(const Formed& after) {
  if (!succeeded_ || verdict_known_) return;
  const auto& members = rounds_.at(*succeeded_).members;
  const auto missed = [&](const Member& member) {
    return !after.has(member.process) && excused(member.process, after.at);
  };
  if (std::any_of(members.begin(), members.end(), missed)) succeeded_.reset();
}

void Checker::on_verdict_known(TimePoint now) {
  if (verdict_known_) return;
  verdict_known_ = now;
  judged_ = newest_;
  // The loss of a node takes back the verdict of a failure that came of it.
  const bool failed = newest_ && rounds_.at(*newest_).failed && leaving_.empty() &&
                      !anybody_excused_since(rounds_.at(*newest_).at);
  if (failed) failure_known_ = now;
}

// Or one that could not be reached, or leaves.
bool Checker::has_lost_member(const Formed& formed) const {
  return std::any_of(formed.members.begin(), formed.members.end(), [this](const Member& member) {
    return excuses_.count(member.process) != 0 || gone_.count(member.process) != 0;
  });
}

void Checker::on_verdict_taken_back() {
  promised(promise::kVerdictStays, has_lost_member(rounds_.at(*judged_)),
           "it was taken back although no node was lost");
  judged_.reset();
  verdict_known_.reset();
  failure_known_.reset();
}

void Checker::on_coordinator_lost() {
  coordinator_lost_ = true;
  verdict_known_.reset();
  failure_known_.reset();
}

void Checker::on_signalled(int process, Coordinated coordinated, TimePoint now) {
  if (!signalled_.emplace(process, now).second) hurried_.insert(process);
  // A spare that no coordinator answers has not been sent the failure.
  const bool spare = newest_ && !rounds_.at(*newest_).has(process);
  if (spare && coordinated == Coordinated::kNo) excuse(process, now);
  on_leaving(process, coordinated);
}

void Checker::on_leaving(int process, Coordinated coordinated) {
  went_unheard_ = went_unheard_ || coordinated == Coordinated::kNo;
  leaving_.insert(process);
  gone_.insert(process);
}

namespace {

bool contains(const std::set<int>& all, const std::set<int>& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

}  // namespace

// Nothing was under way that could have ended the round but that a node joined.
bool Checker::lives(const Stamp& stamp) const {
  const Formed& newest = rounds_.at(*newest_);
  const bool next = newest_->first == stamp.first + 1 && newest_->second == stamp.second &&
                    !newest.given_up && contains(newest.processes, rounds_.at(stamp).processes);
  const auto quiet = [](const Formed& formed) { return !formed.failed && !formed.ends; };
  return (*newest_ == stamp || next) && quiet(newest) && quiet(rounds_.at(stamp));
}

// The moment of success: nothing that happens from now on may change its result.
void Checker::on_rank_done(int process, const Stamp& stamp, TimePoint now) {
  const auto found = rounds_.find(stamp);
  if (found == rounds_.end()) return;
  Formed& formed = found->second;
  ++formed.ranks_done;
  const bool all = formed.ranks_done == formed.members.front().start.world_size.value();
  if (!all || succeeded_ || several_) return;
  const bool quiet =
      lives(stamp) && !verdict_known_ && now >= unheard_until_ && !anybody_excused_since(now);
  const auto goes = [this, now](const Member& member) {
    return leaving_.count(member.process) != 0 || excused(member.process, now);
  };
  const bool somebody_goes = std::any_of(formed.members.begin(), formed.members.end(), goes);
  if (quiet && !somebody_goes && formed.has(process)) succeeded_ = found->first;
}

void Checker::on_stopping(const RoundStamp& stamp, Then then, TimePoint now) {
  const auto found = rounds_.find(key_of(stamp));
  if (found == rounds_.end()) return;
  found->second.ends = found->second.ends || then == Then::kEnds;
  if (!found->second.stopping) found->second.stopping = now;
}

// Its round has ended for it, or it leaves. A verdict is heard also when the coordinator is lost by
// then.
void Checker::on_store_released(int process, const RoundStamp& stamp, TimePoint now) {
  const auto found = rounds_.find(key_of(stamp));
  if (found == rounds_.end()) return;
  Formed& formed = found->second;
  const bool ended = newest_ != found->first || formed.stopping || formed.failed ||
                     verdict_known_ || judged_ == found->first ||
                     formed.succeeded.count(process) != 0;
  promised(promise::kStoreStaysOpen, ended || has_lost_member(formed),
           "the store of round " + std::to_string(stamp.number.value()) +
               " is given up while the round lives");
  formed.released = now;
}

void Checker::on_left(Round round, bool none_lives) {
  promised(promise::kLeftIsTrue, none_lives,
           "a worker of round " + std::to_string(round.value()) +
               " lives on a node that has said that it has none");
}

// A node that was cut off hears late that the round is over, and no one can wait for it.
void Checker::on_store_closed(const RoundStamp& stamp, const StoreClient& client, TimePoint now) {
  const auto found = rounds_.find(key_of(stamp));
  if (found == rounds_.end()) return;
  const Formed& formed = found->second;
  const auto limit =
      std::chrono::duration_cast<Duration>((stop_grace_ + kStopMargin) * kSlowestClock);
  const auto since = [now, limit](const std::optional<TimePoint>& when) {
    return when && now - *when >= limit;
  };
  const bool late = !client.told_to_end || *client.told_to_end > *formed.released;
  promised(promise::kStoreStaysOpen, since(formed.stopping) || (late && since(formed.released)),
           "the store of round " + std::to_string(stamp.number.value()) +
               " closes while its workers live on " + client.host);
}

void Checker::on_undisturbed_end() {
  for (const auto& [process, code] : exit_codes_) {
    promised(promise::kNoHealthyNodeLost, code == 0,
             "process " + std::to_string(process) + " ended with " + std::to_string(code) +
                 " in a run that nothing disturbed");
  }
}

void Checker::on_verdict_told(int coordinator, const Done& done) {
  const auto verdict = verdicts_.emplace(coordinator, done.exit_code).first;
  require(verdict->second == done.exit_code, "two verdicts for one run");
  if (!done.failure || done.failure->no_retry.empty()) return;
  require(terms_.min_uptime.has_value(), "restarts were left unused without --min-uptime");
  require(failed_rounds_ >= 2, "the first failure of a run was taken for a repeated one");
}

void Checker::on_agent_ended(int process, const client::End& end) {
  require(running_.count(process) == 0, "an agent ended over live workers");
  require(!end.text.empty(), "an agent ended without a reason");
  exit_codes_[process] = end.exit_code;
  const bool member = succeeded_ && rounds_.at(*succeeded_).has(process);
  // An agent that is told to go while no coordinator knows how all ended goes, and may be missed.
  // Who is told twice and has no verdict yet ends with the code that was asked for.
  const bool unknowable = went_unheard_ || (coordinator_lost_ && !signalled_.empty()) ||
                          (hurried_.count(process) != 0 && !end.done);
  promised(promise::kSuccessStays, !member || end.exit_code == 0 || unknowable,
           "a member ended with " + std::to_string(end.exit_code) +
               " after all ranks had exited 0: " + end.text);
  const auto signal = signalled_.find(process);
  const bool late =
      failure_known_ && signal != signalled_.end() && signal->second > *failure_known_;
  promised(promise::kVerdictStays, !late || end.done || excuses_.count(process) != 0,
           "a signal replaced the failure that ended the run: " + end.text);
  const auto told = told_.find(process);
  if (end.exit_code != 0 || told == told_.end()) return;
  // Exit 0 is only right if all nodes of some last round succeeded: this agent's, or a later one
  // without it. Where a coordinator was lost for good, a node knows of itself alone.
  const bool knows = end.done && !coordinator_lost_;
  const auto complete = [knows, process](const auto& entry) {
    const auto& succeeded = entry.second.succeeded;
    const int nodes = entry.second.members.front().start.group_size;
    return static_cast<int>(succeeded.size()) == nodes || (!knows && succeeded.count(process) != 0);
  };
  require(std::any_of(rounds_.begin(), rounds_.end(), complete),
          "exit 0 although no round succeeded on all nodes");
}

}  // namespace ddprun::sim

// What a round on one node came to: the result of a RoundDriver.
#include <signal.h>

#include <algorithm>
#include <chrono>

#include "agent/node/round_driver.hpp"

namespace ddprun {

RoundResult RoundDriver::result() const {
  RoundResult all;
  all.state = group_.outcome();
  if (group_.first_failure()) all.failure = first_failure();
  all.error_json = error_json_;
  all.death_logged = death_logged_;
  all.stop_took = group_.stop_took();
  all.spared = group_.spared();
  all.ranks = facts();
  all.waits = waits_;
  all.other_failure = other_failure();
  const std::optional<LocalRank> first = first_here();
  for (std::size_t i = 0; i < workers_.size(); ++i) all.alike += failed_alike(i, first) ? 1 : 0;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const WorkerRecord& ended = group_.worker(LocalRank(static_cast<int>(i)));
    if (!ended.status) continue;
    all.descendants += ports_.descendants_ended(LocalRank(static_cast<int>(i)));
    if (workers_[i].by_itself) continue;
    if (failed_alike(i, first)) continue;
    if (ended.first_signal != 0) ++all.stopped;
    if (ended.had_to_be_killed()) ++all.killed;
  }
  for (const LocalRank rank : group_.running()) {
    all.unkillable.push_back({ports_.name_of(rank), "", ports_.stuck(rank)});
  }
  // Whether a rank left anything may have been unknown until now, because others lived.
  for (const LocalRank rank : group_.leaving()) {
    const std::vector<std::string> left = ports_.left_behind(rank);
    if (left.empty()) continue;
    all.unkillable.push_back({ports_.name_of(rank), left_behind_text(left), ports_.stuck(rank)});
  }
  return all;
}

std::vector<RankFacts> RoundDriver::facts() const {
  std::vector<RankFacts> all = looked_;
  // The report counts back from the failure that it is about, if that was here.
  const auto first = group_.first_failure();
  const bool failed_here = first && !given_up_ && worker(*first).exit;
  const TimePoint since = failed_here ? std::min(looked_at_, worker(*first).exited_at) : looked_at_;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Worker& ended = workers_[i];
    const WorkerRecord& record = group_.worker(LocalRank(static_cast<int>(i)));
    if (ended.exit && !ended.by_itself && record.first_signal == 0) add_raised(all[i]);
    if (!ended.exit || !ended.by_itself) continue;
    const bool succeeded = ended.exit->status.success();
    all[i].end = succeeded ? RankEnd::kSucceeded : RankEnd::kFailed;
    if (ended.exit->complaint) {
      all[i].complaint = ended.exit->complaint;
      all[i].raised = ended.exit->complaint->before;
    }
    if (ended.exited_at >= since) continue;
    all[i].exited = std::chrono::duration_cast<std::chrono::milliseconds>(since - ended.exited_at);
  }
  // Those that say least about the culprit are left out.
  if (all.size() > kRankFactsMax) {
    std::stable_partition(all.begin(), all.end(),
                          [](const RankFacts& facts) { return !facts.complaint; });
    all.resize(kRankFactsMax);
  }
  return all;
}

/// A rank that waited for others while it handled an exception of its own loses them in the failure
/// grace, and tells then.
void RoundDriver::add_raised(RankFacts& facts) const {
  RoundPorts::Raised raised = ports_.raised(facts.local_rank);
  if (!raised.complaint || raised.exception.empty()) return;
  facts.raised = std::move(raised.exception);
  facts.complaint = std::move(raised.complaint);
}

/// By a signal that ddprun did not send it, or before ddprun sent any.
bool RoundDriver::failed_by_itself(std::size_t rank) const {
  const Worker& ended = workers_[rank];
  if (!ended.exit || ended.exit->status.success() || ended.exit->complaint) return false;
  const WorkerRecord& record = group_.worker(LocalRank(static_cast<int>(rank)));
  const bool killed = ended.exit->status.signal() == SIGKILL && record.last_signal != SIGKILL;
  return ended.by_itself || killed || failed_in_grace(rank);
}

/// ddprun sends no signal in the failure grace, which another node's failure may have begun. After
/// a witness the failure may be another one. Who was killed did not react to anything.
bool RoundDriver::failed_in_grace(std::size_t rank) const {
  const Worker& ended = workers_[rank];
  if (given_up_ || ended.by_itself || ended.exit->status.signal() == SIGKILL) return false;
  const auto first = group_.first_failure();
  if (first && worker(*first).exit->complaint) return false;
  return group_.worker(LocalRank(static_cast<int>(rank))).first_signal == 0;
}

/// The others are compared with this failure: the first one of the round; where that was on another
/// node, the first one here that was not stopped.
std::optional<LocalRank> RoundDriver::first_here() const {
  if (group_.first_failure() || given_up_) return group_.first_failure();
  std::optional<LocalRank> first;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (!failed_by_itself(i)) continue;
    const LocalRank rank(static_cast<int>(i));
    if (!first || workers_[i].exited_at < worker(*first).exited_at) first = rank;
  }
  return first;
}

/// As that one did, also if a stop signal was on its way that it did not end by: one with a handler
/// may have ended there, and its last line is older.
bool RoundDriver::failed_alike(std::size_t rank, const std::optional<LocalRank>& first) const {
  const Worker& ended = workers_[rank];
  const LocalRank own(static_cast<int>(rank));
  if (!first || first == own || given_up_ || !ended.exit) return false;
  const WorkerExit& failure = *worker(*first).exit;
  if (failure.complaint || ended.exit->complaint || ended.exit->status.success()) return false;
  const bool signalled = group_.worker(own).first_signal != 0;
  if (signalled && (ended.may_obey || ended.exit->status.by_signal())) return false;
  const std::optional<std::string> theirs = ports_.last_line(*first);
  const std::optional<std::string> line = ports_.last_line(own);
  const bool said_nothing = theirs && line && theirs->empty() && line->empty();
  if (said_nothing) return failure.status == ended.exit->status;
  return is_alike(failure.status, theirs.value_or(""), ended.exit->status, line.value_or(""));
}

/// The rank that had raised an exception first, of those that were stopped.
std::optional<WorkerExit> RoundDriver::slow_failure() const {
  const auto raised_at = [](const Worker& one) {
    return one.raised.exception.empty() ? TimePoint::max() : one.raised.at;
  };
  const auto found = std::min_element(
      workers_.begin(), workers_.end(),
      [&](const Worker& left, const Worker& right) { return raised_at(left) < raised_at(right); });
  if (found == workers_.end() || found->raised.exception.empty() || !found->exit) {
    return std::nullopt;
  }
  WorkerExit slow = *found->exit;
  slow.when -=
      std::chrono::duration_cast<std::chrono::milliseconds>(found->exited_at - found->raised.at);
  slow.status = ExitStatus::exited(1);  // as it would have ended
  slow.lines = {found->raised.exception};
  slow.is_slow = true;
  return slow;
}

std::optional<WorkerExit> RoundDriver::other_failure() const {
  const Worker* earliest = nullptr;
  const std::optional<LocalRank> first = first_here();
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const bool is_first = group_.first_failure() == LocalRank(static_cast<int>(i));
    if (is_first || !failed_by_itself(i) || failed_alike(i, first)) continue;
    if (earliest == nullptr || workers_[i].exited_at < earliest->exited_at) earliest = &workers_[i];
  }
  if (earliest == nullptr) return slow_failure();
  std::optional<WorkerExit> other = earliest->exit;
  other->in_grace = failed_in_grace(static_cast<std::size_t>(earliest - workers_.data()));
  const std::string line = ports_.last_line(other->worker.local_rank).value_or("");
  if (other->lines.empty() && !line.empty()) other->lines = {line};
  return other;
}

}  // namespace ddprun

// What a round on one node came to: the result of a LocalRound.

#include <signal.h>

#include <algorithm>
#include <chrono>

#include "agent/node/local_round.hpp"
#include "agent/report/lines.hpp"

namespace ddprun {

namespace {

/// A rank that waited for others while it handled an exception of its own loses them in the failure
/// grace, and tells then.
void add_raised(RankFacts& facts, const local::Raised& raised) {
  if (!raised.complaint || raised.exception.empty()) return;
  facts.raised = raised.exception;
  facts.complaint = raised.complaint;
}

}  // namespace

RoundResult LocalRound::result(const Ends& ends) const {
  RoundResult all;
  all.state = group_.outcome();
  if (group_.first_failure()) all.failure = first_failure();
  all.error_json = error_json_;
  all.death_logged = death_logged_;
  all.stop_took = group_.stop_took();
  all.spared = group_.spared();
  all.ranks = facts(ends);
  all.waits = waits_;
  const std::optional<LocalRank> first = first_here();
  all.other_failure = other_failure(first, ends);
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const WorkerRecord& ended = group_.worker(LocalRank(static_cast<int>(i)));
    const bool alike = failed_alike(i, first, ends);
    all.alike += alike ? 1 : 0;
    if (ended.status) all.descendants += ends.at(i).descendants;
    if (!ended.status || workers_[i].by_itself || alike) continue;
    if (ended.first_signal != 0) ++all.stopped;
    if (ended.had_to_be_killed()) ++all.killed;
  }
  const auto of = [&ends](LocalRank rank) {
    return ends.at(static_cast<std::size_t>(rank.value()));
  };
  for (const LocalRank rank : group_.running()) {
    all.unkillable.push_back({of(rank).worker, "", of(rank).stuck});
  }
  // Whether a rank left anything may have been unknown until now, because others lived.
  for (const LocalRank rank : group_.leaving()) {
    const AtEnd end = of(rank);
    if (!end.left.empty()) {
      all.unkillable.push_back({end.worker, left_behind_text(end.left), end.stuck});
    }
  }
  return all;
}

LocalRound::Trained LocalRound::trained() const {
  using Taken = WorkerGroup::Taken;
  const Taken taken = group_.taken();
  if (taken == Taken::kBySome) return {};
  const bool told = group_.outcome() == GroupState::kSucceeded;
  return {taken == Taken::kByAll ? options_.round : options_.before,
          told ? std::vector<LocalRank>() : group_.finished()};
}

std::vector<RankFacts> LocalRound::facts(const Ends& ends) const {
  std::vector<RankFacts> all = looked_;
  // The report counts back from the failure that it is about, if that was here.
  const auto first = group_.first_failure();
  const bool failed_here = first && !given_up_ && worker(*first).exit;
  const TimePoint since = failed_here ? std::min(looked_at_, worker(*first).exited_at) : looked_at_;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Worker& ended = workers_[i];
    const WorkerRecord& record = group_.worker(LocalRank(static_cast<int>(i)));
    const bool in_grace = ended.exit && !ended.by_itself && record.first_signal == 0;
    if (in_grace) add_raised(all[i], ends.at(i).raised);
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

/// By a signal that ddprun did not send it, or before ddprun sent any.
bool LocalRound::failed_by_itself(std::size_t rank) const {
  const Worker& ended = workers_[rank];
  if (!ended.exit || ended.exit->status.success() || ended.exit->complaint) return false;
  const WorkerRecord& record = group_.worker(LocalRank(static_cast<int>(rank)));
  const bool killed = ended.exit->status.signal() == SIGKILL && record.last_signal != SIGKILL;
  return ended.by_itself || killed || failed_in_grace(rank);
}

/// ddprun sends no signal in the failure grace, which another node's failure may have begun. After
/// a witness the failure may be another one. Who was killed did not react to anything.
bool LocalRound::failed_in_grace(std::size_t rank) const {
  const Worker& ended = workers_[rank];
  if (given_up_ || ended.by_itself || ended.exit->status.signal() == SIGKILL) return false;
  const auto first = group_.first_failure();
  if (first && worker(*first).exit->complaint) return false;
  return group_.worker(LocalRank(static_cast<int>(rank))).first_signal == 0;
}

/// The others are compared with this failure: the first one of the round; where that was on another
/// node, the first one here that was not stopped.
std::optional<LocalRank> LocalRound::first_here() const {
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
bool LocalRound::failed_alike(std::size_t rank, const std::optional<LocalRank>& first,
                              const Ends& ends) const {
  const Worker& ended = workers_[rank];
  const LocalRank own(static_cast<int>(rank));
  if (!first || first == own || given_up_ || !ended.exit) return false;
  const WorkerExit& failure = *worker(*first).exit;
  if (failure.complaint || ended.exit->complaint || ended.exit->status.success()) return false;
  const bool signalled = group_.worker(own).first_signal != 0;
  if (signalled && (ended.may_obey || ended.exit->status.by_signal())) return false;
  const auto& theirs = ends.at(static_cast<std::size_t>(first->value())).line;
  const auto& line = ends.at(rank).line;
  const bool said_nothing = theirs && line && theirs->empty() && line->empty();
  if (said_nothing) return failure.status == ended.exit->status;
  return is_alike(failure.status, theirs.value_or(""), ended.exit->status, line.value_or(""));
}

/// The rank that had raised an exception first, of those that were stopped.
std::optional<WorkerExit> LocalRound::slow_failure() const {
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

std::optional<WorkerExit> LocalRound::other_failure(const std::optional<LocalRank>& first,
                                                    const Ends& ends) const {
  const Worker* earliest = nullptr;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const bool is_first = group_.first_failure() == LocalRank(static_cast<int>(i));
    if (is_first || !failed_by_itself(i) || failed_alike(i, first, ends)) continue;
    if (earliest == nullptr || workers_[i].exited_at < earliest->exited_at) earliest = &workers_[i];
  }
  if (earliest == nullptr) return slow_failure();
  const auto rank = static_cast<std::size_t>(earliest - workers_.data());
  std::optional<WorkerExit> other = earliest->exit;
  other->in_grace = failed_in_grace(rank);
  const std::string line = ends.at(rank).line.value_or("");
  if (other->lines.empty() && !line.empty()) other->lines = {line};
  return other;
}

std::string RoundResult::unkillable_worker() const {
  const bool has_one = state != GroupState::kSucceeded && !unkillable.empty();
  return has_one ? who(unkillable.front().worker) : "";
}

std::string RoundResult::untold_death_line() const {
  if (state == GroupState::kSucceeded) return "";
  return failure && death_logged == Logged::kNo ? ddprun::death_line(*failure, 0) : death_line;
}

client::GroupGone gone(Round round, const RoundResult& result) {
  using protocol::Milliseconds;
  using std::chrono::duration_cast;
  if (result.state == GroupState::kSucceeded) return {round};
  return {round,
          duration_cast<Milliseconds>(result.stop_took),
          result.killed,
          result.stopped,
          result.ranks,
          result.waits,
          result.other_failure,
          result.alike,
          duration_cast<Milliseconds>(result.spared)};
}

}  // namespace ddprun

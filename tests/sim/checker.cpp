#include "tests/sim/checker.hpp"

#include <algorithm>

namespace ddprun::sim {

using namespace protocol;

void require(bool holds, const std::string& sentence) {
  if (!holds) throw Violation(sentence);
}

Stamp key_of(const RoundStamp& stamp) {
  return {stamp.number.value(), stamp.author};
}

int Checker::restarts() const {
  int most = 0;
  for (const auto& [stamp, formed] : rounds_) {
    most = std::max(most, formed.members.front().start.restarts.value());
  }
  return most;
}

void Checker::on_message(const Message& message) const {
  const auto reason = [](const std::string& text, const char* what) {
    require(!text.empty(), std::string("a ") + what + " without a reason");
  };
  if (const auto* refused = std::get_if<Refused>(&message)) reason(refused->sentence, "refusal");
  if (const auto* stop = std::get_if<Stop>(&message)) {
    reason(stop->reason, "stop");
    require(stop->round != Round(0), "a stop of no round");
    require(!stop->requested || !signalled_.empty(),
            "ranks are asked to save, and none was stopped");
    const bool failed = stop->verdict && stop->verdict->failure;
    require(!stop->requested || !failed, "ranks are asked to save after a failure");
  }
  if (const auto* done = std::get_if<Done>(&message)) reason(done->text, "verdict");
  if (const auto* waiting = std::get_if<Waiting>(&message)) reason(waiting->text, "wait");
  if (const auto* start = std::get_if<StartRound>(&message)) reason(start->reason, "round");
}

void Checker::on_rounds(const std::vector<Sent>& sent, TimePoint now) {
  std::map<Stamp, std::vector<Sent>> by_stamp;
  for (const Sent& one : sent) by_stamp[key_of(one.start.stamp)].push_back(one);
  if (several_) return note_rounds(sent);
  require(by_stamp.size() <= 1, "two rounds in one step");
  for (auto& [stamp, messages] : by_stamp) {
    const auto known = rounds_.find(stamp);
    if (known != rounds_.end()) {
      for (const Sent& one : messages) {
        const auto rank = static_cast<std::size_t>(one.start.group_rank);
        const Member& member = known->second.members.at(rank);
        require(member.process == one.process, "a round was re-sent to another agent");
        require(member.start == one.start, "a round was re-sent with other contents");
      }
      continue;
    }
    Formed formed;
    formed.at = now;
    std::sort(messages.begin(), messages.end(), [](const Sent& left, const Sent& right) {
      return left.start.group_rank < right.start.group_rank;
    });
    formed.members = std::move(messages);
    check_complete(formed);
    check_number(stamp, formed);
    const bool same = std::all_of(
        formed.members.begin(), formed.members.end(),
        [&](const auto& one) { return one.fingerprint == formed.members.front().fingerprint; });
    promised(promise::kOneCommand, same, "two commands in one round");
    if (newest_) check_cause(rounds_.at(*newest_), formed);
    forget_success_without(formed);
    newest_ = stamp;
    // The run continues: the verdict there was has been taken back.
    verdict_known_.reset();
    failure_known_.reset();
    rounds_[stamp] = std::move(formed);
  }
}

// Some members of a round may hear of it later, from a coordinator that took over.
void Checker::note_rounds(const std::vector<Sent>& sent) {
  for (const Sent& one : sent) {
    Formed& formed = rounds_[key_of(one.start.stamp)];
    const auto at = std::lower_bound(formed.members.begin(), formed.members.end(), one,
                                     [](const Sent& left, const Sent& right) {
                                       return left.start.group_rank < right.start.group_rank;
                                     });
    const bool known = at != formed.members.end() && at->start.group_rank == one.start.group_rank;
    require(!known || at->process == one.process, "a round was re-sent to another agent");
    require(!known || at->start == one.start, "a round was re-sent with other contents");
    if (!known) formed.members.insert(at, one);
    const bool whole = static_cast<int>(formed.members.size()) == one.start.group_size;
    if (whole && !known) check_complete(formed);
  }
}

// Ranks are contiguous, unique and complete; what is said to one node agrees with what the others
// hear.
void Checker::check_complete(Formed& formed) const {
  const StartRound& first = formed.members.front().start;
  const int nodes = static_cast<int>(formed.members.size());
  require(nodes >= terms_.nodes_min && nodes <= terms_.nodes_max, "a round of a forbidden size");
  require(first.restarts.value() <= terms_.max_restarts, "more restarts than the budget");
  int base = 0;
  std::map<std::string, int> roles;
  for (int i = 0; i < nodes; ++i) {
    const Member& member = formed.members[static_cast<std::size_t>(i)];
    const StartRound& start = member.start;
    require(start.group_rank == i, "group ranks have a gap or a double");
    require(start.group_size == nodes, "group sizes differ from the number of nodes told");
    require(start.rank_base.value() == base, "ranks are not contiguous");
    require(start.role_rank_base == roles[member.role], "role ranks are not contiguous");
    require(start.restarts == first.restarts, "restart counts differ within a round");
    require(start.master_address == first.master_address && start.master_port == first.master_port,
            "nodes of a round are sent to different stores");
    require(start.master_port != 0, "a round without a store");
    require(formed.processes.insert(member.process).second, "a process is in a round twice");
    base += member.workers;
    roles[member.role] += member.workers;
  }
  for (const Member& member : formed.members) {
    require(member.start.world_size.value() == base, "the world size is not the sum of the nodes");
    require(member.start.role_world_size == roles[member.role], "a role's size is wrong");
  }
}

void Checker::check_number(const Stamp& stamp, const Formed& formed) {
  const auto last = last_by_author_.find(stamp.second);
  if (last != last_by_author_.end()) {
    require(stamp.first > last->second.first, "round numbers do not grow");
    // A jump means that the coordinator took over another one's rounds in between.
    const bool next = stamp.first == last->second.first + 1;
    if (next) check_order(rounds_.at(last->second), formed);
    const int before = rounds_.at(last->second).members.front().start.restarts.value();
    const int after = formed.members.front().start.restarts.value();
    require(after <= failed_rounds_, "more restarts than rounds in which a worker failed");
    largest_restart_step_ = std::max(largest_restart_step_, after - before);
    require(after <= std::max(before, claimed_) + 1, "one round cost more than one restart");
  }
  const bool is_new =
      std::none_of(formed.members.begin(), formed.members.end(),
                   [this](const Member& member) { return told_.contains(member.process); });
  if (last == last_by_author_.end() && is_new) began_anew_.insert(stamp.second);
  for (const Member& member : formed.members) {
    const auto told = told_.find(member.process);
    if (told == told_.end()) continue;
    require(stamp.first > told->second.stamp.number.value(),
            "a round is not above one known already");
  }
  last_by_author_[stamp.second] = stamp;
  lost_.clear();
}

// Nodes that stay keep their relative order, and rank 0 stays where it was.
void Checker::check_order(const Formed& before, const Formed& after) const {
  std::map<int, int> old_rank;
  for (const Member& member : before.members) old_rank[member.process] = member.start.group_rank;
  int last = -1;
  bool newcomer_seen = false;
  for (const Member& member : after.members) {
    // Given up meanwhile, perhaps while it had no link: its old place means nothing.
    if (lost_.count(member.process) != 0 || excused(member.process, after.at)) continue;
    const auto found = old_rank.find(member.process);
    if (found == old_rank.end()) {
      newcomer_seen = true;
      continue;
    }
    if (terms_.nodes_min == terms_.nodes_max) continue;  // node ranks may decide
    require(found->second > last, "survivors changed their order");
    require(!newcomer_seen,
            "a newcomer came before a survivor, process " + std::to_string(member.process));
    last = found->second;
  }
}

void Checker::on_told(int process, const StartRound& start) {
  const auto told = told_.find(process);
  if (told != told_.end() && told->second.stamp.number >= start.stamp.number) return;
  if (told != told_.end()) {
    // Nodes that knew of no round have begun a new run: what an older one knows is of another.
    const bool another = told->second.stamp.author != start.stamp.author &&
                         (several_ || began_anew_.contains(start.stamp.author));
    require(another || start.restarts >= told->second.restarts,
            "an agent saw the restart count go back");
  }
  told_[process] = start;
  const auto formed = rounds_.find(key_of(start.stamp));
  if (formed != rounds_.end()) formed->second.told.insert(process);
}

void Checker::on_group_started(int process, const StartRound& start) {
  require(running_.count(process) == 0, "workers of two rounds on one node");
  const auto told = told_.find(process);
  require(told != told_.end(), "workers were started without a round");
  require(told->second.stamp == start.stamp,
          "workers of a round were started when a later one was known");
  running_[process] = start;
}

void Checker::on_group_failed(const RoundStamp& stamp) {
  ++failures_;
  const auto formed = rounds_.find(key_of(stamp));
  if (formed == rounds_.end() || formed->second.failed) return;
  formed->second.failed = true;
  ++failed_rounds_;
}

void Checker::on_group_given_up(const RoundStamp& stamp) {
  const auto formed = rounds_.find(key_of(stamp));
  if (formed != rounds_.end()) formed->second.given_up = true;
}

void Checker::on_group_succeeded(int process, Round round) {
  const StartRound& start = running_.at(process);
  require(start.stamp.number == round, "success of a round that does not run");
  const auto formed = rounds_.find(key_of(start.stamp));
  if (formed != rounds_.end()) formed->second.succeeded.insert(process);
  running_.erase(process);
}

void Checker::on_finished_before(int process, Round round, int workers) {
  bool is_true = false;
  for (auto& [stamp, formed] : rounds_) {
    const auto its = finished_.find({process, stamp});
    const bool all = its != finished_.end() && its->second == workers;
    if (stamp.first != round.value() || !all) continue;
    is_true = true;
    formed.succeeded.insert(process);
  }
  require(is_true, "ranks are said to have finished, and have not");
}

void Checker::on_group_gone(int process) {
  running_.erase(process);
}

// What it knew of its workers' success has gone with it.
void Checker::on_agent_gone(int process) {
  const bool member = succeeded_ && rounds_.at(*succeeded_).has(process);
  if (member && !verdict_known_ && successes_read_.count(process) == 0) succeeded_.reset();
  gone_.insert(process);
  running_.erase(process);
}

}  // namespace ddprun::sim

#include "agent/explain/run_facts.hpp"

#include <algorithm>

namespace ddprun::explain {

std::set<int> rounds_of(const Nodes& nodes) {
  std::set<int> rounds;
  for (const NodeRecord& node : nodes) {
    for (const auto& [number, round] : node.rounds) rounds.insert(number);
  }
  return rounds;
}

const RoundRecord* any_record(const Nodes& nodes, int round) {
  for (const NodeRecord& node : nodes) {
    const auto found = node.rounds.find(round);
    if (found != node.rounds.end()) return &found->second;
  }
  return nullptr;
}

std::string text_of(const Failure& failure) {
  return "[" + failure.code + "] " + failure.text;
}

std::string failure_text(const Failure& failure) {
  std::string what = text_of(failure);
  if (failure.given_up) return what;
  return "rank " + std::to_string(failure.rank) + " (pid " + std::to_string(failure.pid) + ") on " +
         failure.host + ": " + what;
}

const Failure* finding_in(const Nodes& nodes, int round) {
  for (const NodeRecord& node : nodes) {
    if (node.verdict && node.verdict_round == round && !node.verdict->text.empty()) {
      return &*node.verdict;
    }
  }
  return nullptr;
}

namespace {

/// The verdict tells all nodes who failed first, also where the node of that rank left no record.
const Failure* told_in(const Nodes& nodes, int round, const std::vector<Failure>& recorded) {
  for (const NodeRecord& node : nodes) {
    if (!node.told || node.verdict_round != round || node.told->text.empty()) continue;
    const bool is_recorded =
        std::any_of(recorded.begin(), recorded.end(), [&](const Failure& failure) {
          return failure.given_up || failure.rank == node.told->rank;
        });
    return is_recorded ? nullptr : &*node.told;
  }
  return nullptr;
}

}  // namespace

std::vector<Failure> failures_in(const Nodes& nodes, int round, const std::string& reason) {
  std::vector<Failure> failures;
  for (const NodeRecord& node : nodes) {
    const auto found = node.rounds.find(round);
    if (found == node.rounds.end() || !found->second.failure) continue;
    const Failure& failure = *found->second.failure;
    // All nodes of a round give up together, and say the same.
    const auto says_same = [&failure](const Failure& other) {
      return failure.given_up && failure_text(other) == failure_text(failure);
    };
    const bool is_told = std::any_of(failures.begin(), failures.end(), says_same);
    if (!is_told) failures.push_back(failure);
  }
  if (const Failure* told = told_in(nodes, round, failures)) failures.push_back(*told);
  const Failure* finding = finding_in(nodes, round);
  const auto is_named = [&reason, finding](const Failure& failure) {
    if (finding != nullptr) return failure.rank == finding->rank;
    return reason.find("rank " + std::to_string(failure.rank) + " (") != std::string::npos;
  };
  std::stable_partition(failures.begin(), failures.end(), is_named);
  return failures;
}

int last_round_of(const NodeRecord& node) {
  return node.rounds.empty() ? 0 : node.rounds.rbegin()->first;
}

const NodeRecord* with_verdict(const Nodes& nodes) {
  const auto found = std::find_if(nodes.begin(), nodes.end(), [](const NodeRecord& node) {
    return !node.verdict_text.empty();
  });
  return found == nodes.end() ? nullptr : &*found;
}

bool all_have_ended(const Nodes& nodes, int last) {
  const RoundRecord* of = any_record(nodes, last);
  const auto ended = std::count_if(nodes.begin(), nodes.end(), [last](const NodeRecord& node) {
    return node.rounds.count(last) != 0 && !node.outcome.empty();
  });
  if (of == nullptr) return nodes.size() == 1 && !nodes[0].outcome.empty();
  return ended >= of->nodes;
}

std::string reason_after(const Nodes& nodes, int round) {
  if (const RoundRecord* next = any_record(nodes, round + 1)) return next->text;
  const bool is_last = std::all_of(nodes.begin(), nodes.end(), [round](const NodeRecord& node) {
    return last_round_of(node) <= round;
  });
  if (!is_last) return "";
  if (const NodeRecord* told = with_verdict(nodes)) return told->verdict_text;
  for (const NodeRecord& node : nodes) {
    const auto found = node.rounds.find(round);
    if (found != node.rounds.end() && !found->second.ordered_stop.empty()) {
      return found->second.ordered_stop;
    }
  }
  if (!all_have_ended(nodes, round)) return "";
  for (const NodeRecord& node : nodes) {
    if (last_round_of(node) == round && !node.end_text.empty()) return node.end_text;
  }
  return "";
}

}  // namespace ddprun::explain

#include "agent/explain/explain.hpp"

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>

#include "agent/explain/round_text.hpp"
#include "base/count_text.hpp"
#include "base/printable.hpp"

namespace ddprun::explain {

namespace {

constexpr int kRoundsShownMax = 20;  // of more, the first ones and the last

int first_node_of(const NodeRecord& node) {
  return node.rounds.empty() ? 1 << 30 : node.rounds.begin()->second.node;
}

std::string name_of(const NodeRecord& node) {
  return node.host.empty() ? node.path : node.host;
}

std::string share_text(double part, double whole) {
  char share[32];
  std::snprintf(share, sizeof share, "%.1f %%", whole > 0 ? 100 * part / whole : 0.0);
  return ms_text(part) + " of " + ms_text(whole) + ", " + share;
}

std::string numbers_text(std::vector<int> numbers) {
  std::sort(numbers.begin(), numbers.end());
  std::string text = numbers.size() == 1 ? "round" : "rounds";
  for (std::size_t i = 0; i < std::min<std::size_t>(numbers.size(), kRoundsShownMax); ++i) {
    text += (i == 0 ? " " : ", ") + std::to_string(numbers[i]);
  }
  return text + (numbers.size() > kRoundsShownMax ? ", ..." : "");
}

/// Training is known by steps alone: ranks that live may wait, import or repeat what was lost.
std::string goodput(const Timeline& timeline) {
  if (timeline.whole() <= 0) return "";
  std::string text;
  const Goodput steps = goodput_of(timeline);
  if (steps.known) {
    text = "goodput: steps took " + share_text(steps.counted, timeline.whole());
    if (steps.repeated > 0) {
      text += "; " + count_text(steps.repeated, "step") + " repeated later not counted";
    }
    if (!steps.without.empty()) text += "; none recorded in " + numbers_text(steps.without);
    text += "\n";
  }
  const auto is_open = [](const auto& round) { return round.second.since && !round.second.end; };
  const auto& rounds = timeline.rounds();
  if (std::any_of(rounds.begin(), rounds.end(), is_open)) {
    text += "all ranks alive: for " + ms_text(timeline.ran()) +
            " at least; the end of a round is not recorded";
  } else {
    text += "all ranks alive: for " + share_text(timeline.ran(), timeline.whole());
  }
  return text + (steps.known ? "\n" : "; no steps are recorded, so goodput is not known\n");
}

/// Of a failed round, or one that ended because of a node; empty: it has no cause that is known.
std::string cause_of(const Nodes& nodes, int round) {
  const auto failures = failures_in(nodes, round, reason_after(nodes, round));
  if (const Failure* finding = finding_in(nodes, round)) return text_of(*finding);
  if (!failures.empty()) return failure_text(failures[0]);
  const RoundRecord* next = any_record(nodes, round + 1);
  // A node that joins is no failure.
  return next != nullptr && next->cause != "node_joined" ? next->text : "";
}

/// Of a run that has ended without a failure, and not with success.
std::string cause_of_end(const Nodes& nodes, const std::set<int>& rounds) {
  if (const NodeRecord* told = with_verdict(nodes)) {
    return told->verdict_code == 0 ? "" : told->verdict_text;
  }
  const int last = rounds.empty() ? 0 : *rounds.rbegin();
  if (!all_have_ended(nodes, last)) return "";
  for (const NodeRecord& node : nodes) {
    if (node.signals.empty() || node.signals.front().round != last) continue;
    return "ddprun on " + node.host + " received " + node.signals.front().name;
  }
  return "";
}

bool has_succeeded(const Nodes& nodes, const std::set<int>& rounds) {
  if (const NodeRecord* told = with_verdict(nodes)) return told->verdict_code == 0;
  return all_have_ended(nodes, rounds.empty() ? 0 : *rounds.rbegin()) &&
         std::all_of(nodes.begin(), nodes.end(),
                     [](const NodeRecord& node) { return node.outcome == "succeeded"; });
}

std::string told(const char* label, const Nodes& nodes, int round, const std::string& cause) {
  const auto failures = failures_in(nodes, round, reason_after(nodes, round));
  const Failure* finding = finding_in(nodes, round);
  const bool complained = finding != nullptr && !failures.empty() && !failures[0].given_up;
  return label + printable(cause) + ", in round " + std::to_string(round) + "\n" +
         (complained ? "first to complain: " + printable(failure_text(failures[0])) + "\n" : "") +
         "blast radius: stopped " + blast_radius(nodes, round) + "\n";
}

/// Tells what led to the first restart, from which the run recovered, and what ended the run,
/// unless it has succeeded.
std::string first_cause(const Nodes& nodes, const std::set<int>& rounds) {
  std::string text;
  const bool succeeded = has_succeeded(nodes, rounds);
  for (const int round : rounds) {
    const std::string cause = cause_of(nodes, round);
    const bool is_last = any_record(nodes, round + 1) == nullptr;
    if (cause.empty() || (is_last ? succeeded : !text.empty())) continue;
    text += told(is_last ? "first cause: " : "first restart: ", nodes, round, cause);
    if (is_last) return text;
  }
  const std::string cause = succeeded ? "" : cause_of_end(nodes, rounds);
  return cause.empty() ? text : text + "first cause: " + printable(cause) + "\n";
}

/// How the run ended. What a node that left ended with is not that.
std::string end_of_run(const Nodes& nodes, const std::set<int>& rounds) {
  const auto text = [](const std::string& outcome, int code) {
    return outcome + " with exit code " + std::to_string(code);
  };
  if (const NodeRecord* told = with_verdict(nodes)) {
    // "error" is how a node ends that another one's user has stopped.
    const bool agrees =
        told->exit_code == told->verdict_code && !told->outcome.empty() && told->outcome != "error";
    const std::string outcome = told->verdict_code == 0 ? "succeeded" : "ended";
    return text(agrees ? told->outcome : outcome, told->verdict_code);
  }
  const int last = rounds.empty() ? 0 : *rounds.rbegin();
  if (!all_have_ended(nodes, last)) return "its end is not recorded";
  const NodeRecord* first = nullptr;
  for (const NodeRecord& node : nodes) {
    if (last_round_of(node) != last || node.outcome.empty()) continue;
    if (first == nullptr) first = &node;
    if (node.exit_code != first->exit_code) return "its nodes ended with different exit codes";
  }
  return first == nullptr ? "its end is not recorded" : text(first->outcome, first->exit_code);
}

std::string headline(const Nodes& nodes, const std::set<int>& rounds) {
  const int restarts = rounds.empty() ? 0 : any_record(nodes, *rounds.rbegin())->restarts;
  return "run " + printable(nodes[0].run) + ": " + printable(end_of_run(nodes, rounds)) + "; " +
         count_text(static_cast<long long>(rounds.size()), "round") + ", " +
         count_text(restarts, "restart") + ", " +
         count_text(static_cast<long long>(nodes.size()), "record") + "\n";
}

/// How one node ended, where that is not how the run did; empty: it is, or is not recorded.
std::string own_end(const NodeRecord& node, int last) {
  const bool stayed = !node.verdict_text.empty() && node.exit_code == node.verdict_code;
  const bool is_of_run = last_round_of(node) == last && node.let_go.empty();
  if (node.outcome.empty() || stayed || is_of_run) return "";
  std::string text = "left in round " + std::to_string(last_round_of(node)) + " with exit code " +
                     std::to_string(node.exit_code);
  if (!node.signals.empty()) text += ", after " + node.signals.front().name;
  return text + (node.let_go.empty() ? "" : "; then " + node.let_go);
}

/// What a reader must know about the records themselves, and about signals.
std::string notes_on(const NodeRecord& node, int last_round) {
  std::string text;
  const auto add = [&](const std::string& note) {
    text += "note: " + printable(name_of(node) + ": " + note) + "\n";
  };
  if (node.outcome.empty()) {
    add("the record has no end after " + node.last_time +
        (node.disk_full ? ": its file system is full, so that it may be incomplete"
                        : ": ddprun still runs, or was killed, or its host was lost, or its file "
                          "could not be written"));
  }
  if (const std::string end = own_end(node, last_round); !end.empty()) add(end);
  if (node.missing != 0) {
    add(count_text(static_cast<long long>(node.missing), "event") + " missing in " + node.path);
  }
  if (node.unreadable != 0) {
    add(count_text(static_cast<long long>(node.unreadable), "line") + " unreadable in " +
        node.path);
  }
  return text;
}

bool come_in_order(const NodeRecord& one, const NodeRecord& other) {
  return std::make_tuple(first_node_of(one), one.host, one.path) <
         std::make_tuple(first_node_of(other), other.host, other.path);
}

/// Two records of one place in one round are of two runs.
Result<void> check_same_run(const Nodes& nodes) {
  std::map<std::pair<int, int>, const NodeRecord*> places;
  for (const NodeRecord& node : nodes) {
    if (node.run != nodes[0].run) {
      return Error{ErrorKind::kUsage, nodes[0].path + " is of run " + nodes[0].run + ", " +
                                          node.path + " of run " + node.run +
                                          "; name the directories of one run"};
    }
    for (const auto& [number, round] : node.rounds) {
      const auto [at, is_new] = places.emplace(std::make_pair(number, round.node), &node);
      if (is_new) continue;
      return Error{ErrorKind::kUsage, at->second->path + " and " + node.path +
                                          " are both of node " + std::to_string(round.node) +
                                          ", so of two runs; name the directories of one run"};
    }
  }
  return {};
}

}  // namespace

Result<std::string> explain(Nodes nodes) {
  std::sort(nodes.begin(), nodes.end(), come_in_order);
  if (nodes.empty()) return Error{ErrorKind::kUsage, "there is no record to explain"};
  if (const auto checked = check_same_run(nodes); !checked) return checked.error();
  const std::set<int> rounds = rounds_of(nodes);
  const Timeline timeline(nodes);
  const int last = rounds.empty() ? 0 : *rounds.rbegin();
  std::string text = headline(nodes, rounds) + first_cause(nodes, rounds) + goodput(timeline);
  for (const NodeRecord& node : nodes) text += notes_on(node, last);
  int shown = 0;
  for (const int round : rounds) {
    const bool is_last = round == *rounds.rbegin();
    if (++shown >= kRoundsShownMax && !is_last) continue;
    if (shown > kRoundsShownMax) {
      text += "(" + count_text(shown - kRoundsShownMax, "round") + " not shown)\n";
    }
    text += round_text(nodes, timeline, round);
  }
  return text;
}

}  // namespace ddprun::explain

#include "agent/core/explain/explain.hpp"

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>

#include "agent/core/explain/recovery.hpp"
#include "base/count_text.hpp"
#include "base/duration_text.hpp"
#include "base/printable.hpp"

namespace ddprun::explain {

namespace {

using Nodes = std::vector<NodeRecord>;

constexpr int kRoundsShownMax = 20;  // of more, the first ones and the last

std::string ms_text(double ms) {
  if (ms < 10) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f ms", ms);
    return text;
  }
  return duration_text(std::chrono::duration_cast<Duration>(
      std::chrono::duration<double, std::milli>(std::min(ms, 1e12))));
}

std::string labelled_line(const std::string& label, const std::string& text) {
  constexpr std::size_t kWidth = 14;
  return "  " + label + std::string(kWidth - std::min(kWidth - 1, label.size()), ' ') +
         printable(text) + "\n";
}

int first_node_of(const NodeRecord& node) {
  return node.rounds.empty() ? 1 << 30 : node.rounds.begin()->second.node;
}

std::string name_of(const NodeRecord& node) {
  return node.host.empty() ? node.path : node.host;
}

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

/// Who failed and how. Ranks that were given up have not failed: none of them is named.
std::string failure_text(const Failure& failure) {
  std::string what = text_of(failure);
  if (failure.given_up) return what;
  return "rank " + std::to_string(failure.rank) + " (pid " + std::to_string(failure.pid) + ") on " +
         failure.host + ": " + what;
}

/// What the coordinator found about all ranks of a round, with the rank that failed first: it may
/// be a witness of the cause. None: the first failure is the cause.
const Failure* finding_in(const Nodes& nodes, int round) {
  for (const NodeRecord& node : nodes) {
    if (node.verdict && node.verdict_round == round && !node.verdict->text.empty()) {
      return &*node.verdict;
    }
  }
  return nullptr;
}

/// The failures that the nodes saw in a round; first the one that a finding or else `reason` names.
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
  const Failure* finding = finding_in(nodes, round);
  const auto is_named = [&reason, finding](const Failure& failure) {
    if (finding != nullptr) return failure.rank == finding->rank;
    return reason.find("rank " + std::to_string(failure.rank) + " (") != std::string::npos;
  };
  std::stable_partition(failures.begin(), failures.end(), is_named);
  return failures;
}

/// Why a round ended, in the words of the coordinator; empty: no node recorded it.
std::string reason_after(const Nodes& nodes, int round) {
  if (const RoundRecord* next = any_record(nodes, round + 1)) return next->text;
  for (const NodeRecord& node : nodes) {
    if (!node.verdict_text.empty()) return node.verdict_text;
    const auto found = node.rounds.find(round);
    if (found != node.rounds.end() && !found->second.ordered_stop.empty()) {
      return found->second.ordered_stop;
    }
  }
  for (const NodeRecord& node : nodes) {
    if (!node.end_text.empty()) return node.end_text;
  }
  return "";
}

struct Stopped {
  std::int64_t ranks = 0;
  std::int64_t killed = 0;
  std::int64_t nodes = 0;
};
Stopped stopped_in(const Nodes& nodes, int round) {
  Stopped all;
  for (const NodeRecord& node : nodes) {
    const auto found = node.rounds.find(round);
    if (found == node.rounds.end() || found->second.stopped == 0) continue;
    all.ranks += found->second.stopped;
    all.killed += found->second.killed;
    ++all.nodes;
  }
  return all;
}

std::string blast_radius(const Nodes& nodes, int round) {
  const Stopped stopped = stopped_in(nodes, round);
  const RoundRecord& of = *any_record(nodes, round);
  if (stopped.ranks == 0) return "no other rank";
  std::string text = std::to_string(stopped.ranks) + " of " + count_text(of.world_size, "rank") +
                     ", on " + count_text(stopped.nodes, "node");
  if (stopped.killed != 0) text += "; " + std::to_string(stopped.killed) + " needed SIGKILL";
  return text;
}

/// What workers had started, and what was not ended; empty: nothing.
std::string cleanup_text(const Nodes& nodes, int round) {
  long long descendants = 0;
  std::string survivors;
  for (const NodeRecord& node : nodes) {
    const auto found = node.rounds.find(round);
    if (found == node.rounds.end()) continue;
    descendants += found->second.descendants;
    if (found->second.still_alive == 0) continue;
    survivors += (survivors.empty() ? "" : ", ") + found->second.survivors;
  }
  std::string text;
  if (descendants > 0) text = count_text(descendants, "descendant") + " of workers ended";
  if (!survivors.empty()) {
    text += (text.empty() ? "" : "; ") + std::string("still alive after SIGKILL: ") + survivors;
  }
  return text;
}

std::string recovery_text(const Recovery& recovery) {
  std::string text;
  const auto add = [&text](const char* phase, Moment took) {
    if (took) text += (text.empty() ? "" : ", ") + std::string(phase) + " " + ms_text(*took);
  };
  add("detect", recovery.detect);
  add("stop", recovery.stop);
  add("rendezvous", recovery.rendezvous);
  add("start", recovery.start);
  add("spawn", recovery.spawn);
  add("join", recovery.join);
  if (recovery.whole) text += "; " + ms_text(*recovery.whole) + " without all ranks";
  return text;
}

std::string missing_nodes(const Nodes& nodes, int round) {
  const RoundRecord& of = *any_record(nodes, round);
  std::set<int> here;
  for (const NodeRecord& node : nodes) {
    const auto found = node.rounds.find(round);
    if (found != node.rounds.end()) here.insert(found->second.node);
  }
  const auto missing = of.nodes - static_cast<int>(here.size());
  if (missing <= 0) return "";
  return count_text(missing, "node") + " of " + std::to_string(of.nodes) + " left no record here";
}

std::string health_text(const Health& health) {
  if (!health.since) return "never all running";
  if (health.ms) return "all running for " + ms_text(*health.ms);
  return "all running from " + ms_text(*health.since) + " on; the record breaks off";
}

std::string failure_lines(const Failure* finding, const std::vector<Failure>& failures) {
  std::string text;
  if (finding != nullptr) text = labelled_line("failure", text_of(*finding));
  const char* first = finding == nullptr ? "failure" : "complained";
  for (std::size_t i = 0; i < std::min<std::size_t>(failures.size(), 4); ++i) {
    if (finding != nullptr && failures[i].given_up) continue;
    text += labelled_line(i == 0 ? first : "also failed", failure_text(failures[i]));
  }
  return text;
}

std::string round_text(const Nodes& nodes, int round) {
  const RoundRecord& of = *any_record(nodes, round);
  std::string text = "round " + std::to_string(round) + ": " + count_text(of.world_size, "rank") +
                     " on " + count_text(of.nodes, "node") + ", " +
                     health_text(health_in(nodes, round)) + "\n";
  const std::string reason = reason_after(nodes, round);
  const auto failures = failures_in(nodes, round, reason);
  if (!reason.empty()) text += labelled_line("then", reason);
  text += failure_lines(finding_in(nodes, round), failures);
  if (any_record(nodes, round + 1) != nullptr || !failures.empty()) {
    text += labelled_line("stopped", blast_radius(nodes, round));
  }
  if (const std::string cleanup = cleanup_text(nodes, round); !cleanup.empty()) {
    text += labelled_line("cleanup", cleanup);
  }
  if (any_record(nodes, round + 1) != nullptr) {
    text += labelled_line("recovery", recovery_text(recovery_after(nodes, round)));
  }
  const std::string missing = missing_nodes(nodes, round);
  return missing.empty() ? text : text + labelled_line("missing", missing);
}

std::string goodput(const Nodes& nodes, const std::set<int>& rounds) {
  double ran = 0;
  double whole = 0;
  for (const int round : rounds) {
    const Health health = health_in(nodes, round);
    if (health.since && !health.ms) return "goodput: not known: the record breaks off\n";
    ran += health.ms.value_or(0);
  }
  for (const NodeRecord& node : nodes) whole = std::max(whole, node.last);
  if (whole <= 0) return "";
  char share[32];
  std::snprintf(share, sizeof share, "%.1f %%", 100 * std::min(1.0, ran / whole));
  return "goodput: all ranks ran for " + ms_text(ran) + " of " + ms_text(whole) + ", " + share +
         "\n";
}

std::string first_cause(const Nodes& nodes, const std::set<int>& rounds) {
  for (const int round : rounds) {
    const std::string reason = reason_after(nodes, round);
    const auto failures = failures_in(nodes, round, reason);
    const Failure* finding = finding_in(nodes, round);
    std::string cause;
    if (finding != nullptr) {
      cause = text_of(*finding);
    } else if (!failures.empty()) {
      cause = failure_text(failures[0]);
    } else if (const RoundRecord* next = any_record(nodes, round + 1)) {
      cause = next->text;
    } else {
      continue;
    }
    const bool complained = finding != nullptr && !failures.empty() && !failures[0].given_up;
    return "first cause: " + printable(cause) + ", in round " + std::to_string(round) + "\n" +
           (complained ? "first to complain: " + printable(failure_text(failures[0])) + "\n" : "") +
           "blast radius: stopped " + blast_radius(nodes, round) + "\n";
  }
  for (const NodeRecord& node : nodes) {
    if (node.signals.empty()) continue;
    return "first cause: ddprun on " + printable(node.host + " received " + node.signals.front()) +
           "\n";
  }
  return "";
}

std::string headline(const Nodes& nodes, const std::set<int>& rounds) {
  std::string end = "its end is not recorded";
  for (const NodeRecord& node : nodes) {
    if (node.outcome.empty()) continue;
    end = node.outcome + " with exit code " + std::to_string(node.exit_code);
    break;
  }
  const int restarts = rounds.empty() ? 0 : any_record(nodes, *rounds.rbegin())->restarts;
  return "run " + printable(nodes[0].run) + ": " + printable(end) + "; " +
         count_text(static_cast<long long>(rounds.size()), "round") + ", " +
         count_text(restarts, "restart") + ", " +
         count_text(static_cast<long long>(nodes.size()), "record") + "\n";
}

/// What a reader must know about the records themselves, and about signals.
std::string notes_on(const NodeRecord& node) {
  std::string text;
  const auto add = [&](const std::string& note) {
    text += "note: " + printable(name_of(node) + ": " + note) + "\n";
  };
  if (node.outcome.empty()) add("the record has no end: ddprun was killed, or its host was lost");
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
  std::string text = headline(nodes, rounds) + first_cause(nodes, rounds) + goodput(nodes, rounds);
  for (const NodeRecord& node : nodes) text += notes_on(node);
  int shown = 0;
  for (const int round : rounds) {
    const bool is_last = round == *rounds.rbegin();
    if (++shown >= kRoundsShownMax && !is_last) continue;
    if (shown > kRoundsShownMax) {
      text += "(" + count_text(shown - kRoundsShownMax, "round") + " not shown)\n";
    }
    text += round_text(nodes, round);
  }
  return text;
}

}  // namespace ddprun::explain

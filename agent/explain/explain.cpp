#include "agent/explain/explain.hpp"

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>

#include "agent/explain/recovery.hpp"
#include "base/format.hpp"
#include "base/printable.hpp"

namespace ddprun::explain {

namespace {

constexpr std::size_t kFailuresShown = 4;  // of one round

std::string labelled_line(const std::string& label, const std::string& text) {
  constexpr std::size_t kWidth = 14;
  return "  " + label + std::string(kWidth - std::min(kWidth - 1, label.size()), ' ') +
         printable(text) + "\n";
}

struct Stopped {
  std::int64_t ranks = 0;
  std::int64_t killed = 0;
  std::int64_t nodes = 0;
};
Stopped stopped_in(const Nodes& nodes, int round) {
  Stopped all;
  for (const NodeRecord& node : nodes) {
    const RoundRecord* const found = round_of(node, round);
    if (found == nullptr || found->stopped == 0) continue;
    all.ranks += found->stopped;
    all.killed += found->killed;
    ++all.nodes;
  }
  return all;
}

std::string missing_nodes(const Nodes& nodes, int round) {
  const RoundRecord& of = *any_record(nodes, round);
  std::set<int> here;
  for (const NodeRecord& node : nodes) {
    const RoundRecord* const found = round_of(node, round);
    if (found != nullptr) here.insert(found->node);
  }
  const auto missing = of.nodes - static_cast<int>(here.size());
  if (missing <= 0) return "";
  return count_text(missing, "node") + " of " + std::to_string(of.nodes) + " left no record here";
}

/// "3.2 ms", "1 min 5 s".
std::string ms_text(double ms) {
  if (ms < 10) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f ms", ms);
    return text;
  }
  return duration_text(std::chrono::duration_cast<Duration>(
      std::chrono::duration<double, std::milli>(std::min(ms, 1e12))));
}

/// The ranks that were stopped because of what ended a round: "3 of 4 ranks, on 2 nodes".
std::string blast_radius(const Nodes& nodes, int round) {
  const Stopped stopped = stopped_in(nodes, round);
  const RoundRecord& of = *any_record(nodes, round);
  const bool all = missing_nodes(nodes, round).empty();
  if (stopped.ranks == 0) return all ? "no other rank" : "no other rank with a record";
  std::string text = (all ? "" : "at least ") + std::to_string(stopped.ranks) + " of " +
                     count_text(of.world_size, "rank") + ", on " +
                     count_text(stopped.nodes, "node");
  if (stopped.killed != 0) text += "; " + std::to_string(stopped.killed) + " needed SIGKILL";
  return text;
}

/// The text tells what workers had started, and what was not ended; empty: nothing.
std::string cleanup_text(const Nodes& nodes, int round) {
  long long descendants = 0;
  std::string survivors;
  for (const NodeRecord& node : nodes) {
    const RoundRecord* const found = round_of(node, round);
    if (found == nullptr) continue;
    descendants += found->descendants;
    if (found->still_alive == 0) continue;
    survivors += (survivors.empty() ? "" : ", ") + found->survivors;
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
  if (recovery.without_step) text += "; " + ms_text(*recovery.without_step) + " without a step";
  return text.starts_with("; ") ? text.substr(2) : text;
}

std::string health_text(const RoundTimes& times) {
  if (!times.since) return "never all running";
  if (times.end) return "all running for " + ms_text(*times.end - *times.since);
  return "all running from " + ms_text(*times.since) + " on; its end is not recorded";
}

std::string failure_lines(const Failure* finding, const std::vector<Failure>& failures) {
  std::string text;
  if (finding != nullptr) text = labelled_line("failure", text_of(*finding));
  const char* first = finding == nullptr ? "failure" : "complained";
  for (std::size_t i = 0; i < std::min(failures.size(), kFailuresShown); ++i) {
    if (finding != nullptr && failures[i].given_up) continue;
    text += labelled_line(i == 0 ? first : "also failed", failure_text(failures[i]));
  }
  return text;
}

/// Other ranks of these nodes that failed by themselves, while they were not stopped yet.
std::string other_exits(const Nodes& nodes, int round, const std::vector<Failure>& failures) {
  std::string text;
  std::size_t shown = std::min(failures.size(), kFailuresShown);
  std::size_t left_out = failures.size() - shown;
  for (const NodeRecord& node : nodes) {
    const RoundRecord* const found = round_of(node, round);
    if (found == nullptr || (!found->failure && failures.empty())) continue;
    // None: the first one of the round was on another node, by whose clock it is known.
    const std::optional<Failure>& first = found->failure;
    if (first && first->given_up) continue;
    double began = first ? first->at : 0;
    for (const Exit& exit : found->exits) {
      if (first && exit.rank == first->rank) began = exit.at;
    }
    for (const Exit& exit : found->exits) {
      const bool failed = exit.exit_code != 0 || exit.signal != 0;
      const bool is_told = std::any_of(failures.begin(), failures.end(),
                                       [&](const Failure& one) { return one.rank == exit.rank; });
      const bool by_itself = failed && exit.sent_signal == 0 && !is_told;
      if (!by_itself) continue;
      if (++shown > kFailuresShown) {
        ++left_out;
        continue;
      }
      std::string how = exit.signal != 0 ? "signal " + std::to_string(exit.signal)
                                         : "exit code " + std::to_string(exit.exit_code);
      if (first) how += ", " + ms_text(std::max(exit.at - began, 0.0)) + " later";
      text += labelled_line("also failed", "rank " + std::to_string(exit.rank) + " on " +
                                               (first ? first->host : node.host) + ": " + how);
    }
  }
  if (left_out == 0) return text;
  return text +
         labelled_line("also failed", count_text(static_cast<long long>(left_out), "more rank"));
}

/// The verdict names a rank that did not end by itself.
std::string told_of_others(const Nodes& nodes, int round) {
  for (const NodeRecord& node : nodes) {
    if (node.verdict_round != round || node.verdict_also.empty()) continue;
    return labelled_line("others", node.verdict_also);
  }
  return "";
}

/// One round in words: who failed, what was stopped because of it, and what the recovery cost.
std::string round_text(const Nodes& nodes, const Timeline& timeline, int round) {
  const RoundRecord& of = *any_record(nodes, round);
  std::string text = "round " + std::to_string(round) + ": " + count_text(of.world_size, "rank") +
                     " on " + count_text(of.nodes, "node") + ", ";
  const auto times = timeline.rounds().find(round);
  const bool timed = times != timeline.rounds().end();
  text += (timed ? health_text(times->second) : "its times are not recorded") + "\n";
  const std::string reason = reason_after(nodes, round);
  const auto failures = failures_in(nodes, round, reason);
  if (!reason.empty()) text += labelled_line("then", reason);
  text += failure_lines(finding_in(nodes, round), failures);
  const std::string exits = other_exits(nodes, round, failures);
  text += exits.empty() ? told_of_others(nodes, round) : exits;
  if (any_record(nodes, round + 1) != nullptr || !failures.empty()) {
    text += labelled_line("stopped", blast_radius(nodes, round));
  }
  if (const std::string cleanup = cleanup_text(nodes, round); !cleanup.empty()) {
    text += labelled_line("cleanup", cleanup);
  }
  if (any_record(nodes, round + 1) != nullptr) {
    text += labelled_line("recovery", recovery_text(recovery_after(nodes, timeline, round)));
  }
  const std::string missing = missing_nodes(nodes, round);
  return missing.empty() ? text : text + labelled_line("missing", missing);
}

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

#include "agent/explain/round_text.hpp"

#include <algorithm>
#include <cstdio>

#include "base/count_text.hpp"
#include "base/duration_text.hpp"
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
    const auto found = node.rounds.find(round);
    if (found == node.rounds.end() || found->second.stopped == 0) continue;
    all.ranks += found->second.stopped;
    all.killed += found->second.killed;
    ++all.nodes;
  }
  return all;
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

}  // namespace

std::string ms_text(double ms) {
  if (ms < 10) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f ms", ms);
    return text;
  }
  return duration_text(std::chrono::duration_cast<Duration>(
      std::chrono::duration<double, std::milli>(std::min(ms, 1e12))));
}

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

namespace {

/// The text tells what workers had started, and what was not ended; empty: nothing.
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
    const auto found = node.rounds.find(round);
    if (found == node.rounds.end() || (!found->second.failure && failures.empty())) continue;
    // None: the first one of the round was on another node, by whose clock it is known.
    const std::optional<Failure>& first = found->second.failure;
    if (first && first->given_up) continue;
    double began = first ? first->at : 0;
    for (const Exit& exit : found->second.exits) {
      if (first && exit.rank == first->rank) began = exit.at;
    }
    for (const Exit& exit : found->second.exits) {
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

}  // namespace

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

}  // namespace ddprun::explain

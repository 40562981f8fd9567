#include "rendezvous/round/culprit_text.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/format.hpp"
#include "base/printable.hpp"

namespace ddprun::round {

namespace {

// Ranks that are described one by one, and ranges of a list.
constexpr std::size_t kDescribedMax = 3;
constexpr std::size_t kRangesMax = 8;
// Different keys of the store in one line.
constexpr std::size_t kStoreKeysShown = 3;

std::vector<int> numbers(const Ranks& ranks) {
  std::vector<int> all;
  for (const RankOnHost* rank : ranks) all.push_back(rank->facts.rank.value());
  return all;
}

std::string number_text(const RankOnHost& rank) {
  return "rank " + std::to_string(rank.facts.rank.value());
}

std::string full_name(const RankOnHost& rank) {
  const int pid = rank.facts.pid;  // 0: its node told only how its ranks ended
  return number_text(rank) + " (local " + std::to_string(rank.facts.local_rank.value()) +
         (pid == 0 ? "" : ", pid " + std::to_string(pid)) + ") on " + rank.host;
}

std::string odd_names(const Trial& trial) {
  if (trial.odd.size() == 1) return full_name(*trial.odd.front());
  return rank_list(numbers(trial.odd)) + " (" + trial.odd.front()->host +
         (std::all_of(trial.odd.begin(), trial.odd.end(),
                      [&](const RankOnHost* rank) { return rank->host == trial.odd.front()->host; })
              ? ")"
              : " and others)");
}

std::string waited(const Complaint& complaint) {
  return complaint.limit.count() > 0 ? " " + span_text("after", complaint.limit) : "";
}

bool all_succeeded(const Ranks& ranks) {
  return std::all_of(ranks.begin(), ranks.end(),
                     [](const RankOnHost* rank) { return rank->facts.end == RankEnd::kSucceeded; });
}

bool all_absent(const Ranks& ranks) {
  return std::all_of(ranks.begin(), ranks.end(),
                     [](const RankOnHost* rank) { return is_absent(*rank); });
}

std::string collective_text(const Trial& trial) {
  const std::string what = trial.disagree
                               ? "the ranks disagree; "
                               : "a collective gave up" + waited(*trial.complaint) + "; ";
  if (trial.odd.empty()) return what + "the facts do not tell which rank is the cause";
  const bool one = trial.odd.size() == 1;
  return what + odd_names(trial) + (one ? " is the odd one out" : " are the odd ones out");
}

// Of a key that the program waits for.
std::string key_text(const Trial& trial) {
  std::string key = printable(trial.complaint->key);
  std::replace(key.begin(), key.end(), '"', '\'');
  const bool one = key.find(", ") == key.npos;
  const WorkerName& worker = trial.first->worker;
  return "rank " + std::to_string(worker.rank.value()) + " (" + worker.host + ") gave up" +
         waited(*trial.complaint) +
         (one ? ": no rank had set the key \"" + key + "\" of the store"
              : ": not all keys that it waited for were set in the store (\"" + key + "\")");
}

std::string rendezvous_text(const Trial& trial) {
  if (!trial.complaint->key.empty()) return key_text(trial);
  const std::string gave_up = "the ranks did not all arrive" + waited(*trial.complaint) + "; ";
  if (trial.odd.empty()) return gave_up + "the facts do not tell which one is missing";
  return gave_up + odd_names(trial) + " did not arrive";
}

std::string lost_text(const Trial& trial) {
  if (trial.odd.empty()) {
    const WorkerName& worker = trial.first->worker;
    return "rank " + std::to_string(worker.rank.value()) + " (" + worker.host +
           ") lost its connection to another rank; no rank is known to have failed before";
  }
  const RankFacts& first = trial.odd.front()->facts;
  if (first.end == RankEnd::kRuns &&
      (first.raised.empty() || first.raised.starts_with(kInThread))) {
    return "the connection between ranks was lost; " + odd_names(trial) +
           (trial.odd.size() == 1 ? " is the odd one out" : " are the odd ones out");
  }
  const bool have_exited = all_succeeded(trial.odd);
  const bool have_ended = trial.odd.front()->facts.complaint.has_value();
  return "the others lost their connection to " + odd_names(trial) +
         (have_exited  ? ", which had exited with code 0"
          : have_ended ? ", which had raised an exception"
                       : ", which had raised an exception and not exited yet");
}

// ", 0 ms of CPU in the last 500 ms".
std::string used_cpu(const RankFacts& facts) {
  if (!facts.cpu || !facts.watched || *facts.watched < kCpuWatchedMin) return "";
  return ", " + duration_text(*facts.cpu) + " of CPU in the last " + duration_text(*facts.watched);
}

std::string activity(const RankFacts& facts) {
  const std::string& call = facts.waits_in.empty() ? facts.channel : facts.waits_in;
  if (facts.state == "T") return "is stopped (state T)";
  if (facts.state == "t") return "is stopped by a debugger (state t)";
  if (facts.state == "R") return "computes (state R" + used_cpu(facts) + ")";
  if (facts.state == "D") {
    return "is in uninterruptible sleep (state D" + (call.empty() ? "" : ", " + call) + ")";
  }
  if (facts.state != "S") return "has reported nothing";
  const std::string state = " (state S" + used_cpu(facts) + ")";
  if (call.empty()) return "is idle" + state;
  const bool sleeps = call.ends_with("nanosleep");
  return (sleeps ? "sleeps in " : "waits in ") + call + state;
}

// "is stopped (state T), no output for 4.2 s".
std::string doing(const RankFacts& facts) {
  if (facts.end == RankEnd::kSucceeded) {
    const std::string before = facts.exited ? ", " + duration_text(*facts.exited) + " before" : "";
    return "exited with code 0" + before;
  }
  if (facts.complaint) {
    const Complaint& own = *facts.complaint;
    const bool has_raised = !facts.raised.empty();
    std::string text =
        (has_raised ? "raised " + facts.raised + ", and then waited in " : "waits in ") +
        (own.operation.empty() ? "a collective" : own.operation);
    if (own.sequence) text += " number " + std::to_string(*own.sequence);
    if (!own.place.empty()) text += " (" + own.place + ")";
    return text;
  }
  std::string text = activity(facts);
  const bool in_thread = facts.raised.starts_with(kInThread);
  if (!facts.raised.empty()) {
    return text + (in_thread ? " after an exception " : " after its traceback: ") + facts.raised;
  }
  if (facts.silent && facts.silent->count() > 0) {
    text += ", no output for " + duration_text(*facts.silent);
  }
  return text;
}

void describe(const Ranks& ranks, std::vector<std::string>& lines) {
  std::map<std::string, std::vector<int>> alike;
  std::vector<const std::string*> order;
  for (const RankOnHost* rank : ranks) {
    const auto [entry, fresh] = alike.try_emplace(doing(rank->facts));
    if (fresh) order.push_back(&entry->first);
    entry->second.push_back(rank->facts.rank.value());
  }
  for (std::size_t i = 0; i < order.size() && i < kDescribedMax; ++i) {
    const std::vector<int>& same = alike[*order[i]];
    std::string text = *order[i];
    if (same.size() > 1) {
      for (const auto& [verb, plural] : {std::pair<std::string, std::string>{"is ", "are "},
                                         {"has ", "have "},
                                         {"waits ", "wait "},
                                         {"sleeps ", "sleep "},
                                         {"computes ", "compute "}}) {
        if (text.starts_with(verb)) text = plural + text.substr(verb.size());
      }
    }
    lines.push_back(rank_list(same) + " " + text);
  }
}

// "key "default_pg/0//cpu//0/1" and 2 others": a key is foreign text and cannot end its quotes.
std::string keys_text(const StoreWait& wait) {
  std::string key = printable(wait.key);
  std::replace(key.begin(), key.end(), '"', '\'');
  std::string text = "key \"" + key + "\"";
  if (wait.keys > 1) text += " and " + count_text(wait.keys - 1, "other");
  return text;
}

// What the store of the round knows: who waits there for what, and who is not there at all.
void describe_store(ComplaintKind kind, const Ranks& ranks, std::vector<std::string>& lines) {
  std::map<std::string, Ranks> waiting;
  std::vector<int> absent;
  for (const RankOnHost* rank : ranks) {
    if (rank->wait) waiting[keys_text(*rank->wait)].push_back(rank);
    const bool matters = kind == ComplaintKind::kRendezvous;
    if (matters && is_absent(*rank)) absent.push_back(rank->facts.rank.value());
  }
  std::string text;
  std::size_t shown = 0;
  for (const auto& [keys, same] : waiting) {
    if (++shown > kStoreKeysShown) break;
    std::chrono::milliseconds longest{0};
    for (const RankOnHost* rank : same) longest = std::max(longest, rank->wait->waited);
    text += text.empty() ? "" : "; ";
    text += rank_list(numbers(same)) + (same.size() == 1 ? " waits" : " wait") +
            " in the store for " + keys + " for " + duration_text(longest);
  }
  if (!absent.empty() && absent.size() < ranks.size()) {
    text += text.empty() ? "" : "; ";
    const bool one = absent.size() == 1;
    text += rank_list(absent) + (one ? " is" : " are") + " not connected to the store";
  }
  if (!text.empty()) lines.push_back(text);
}

Ranks without(const Ranks& all, const Ranks& some) {
  Ranks rest;
  for (const RankOnHost* rank : all) {
    if (std::find(some.begin(), some.end(), rank) == some.end()) rest.push_back(rank);
  }
  return rest;
}

std::vector<std::string> evidence(const Trial& trial) {
  std::vector<std::string> lines;
  const std::string said = "rank " + std::to_string(trial.first->worker.rank.value()) +
                           " said: " + trial.first->complaint->line;
  if (trial.disagree) return {said};
  describe(trial.odd, lines);
  if (trial.odd.empty()) describe(trial.silent, lines);
  Ranks all = trial.silent;
  all.insert(all.end(), trial.witnesses.begin(), trial.witnesses.end());
  describe_store(trial.complaint->kind, all, lines);
  const Ranks others = without(trial.witnesses, trial.odd);
  Ranks waiting;
  for (const RankOnHost* rank : others) {
    if (rank->facts.complaint->kind == trial.complaint->kind) waiting.push_back(rank);
  }
  const bool lost = trial.complaint->kind == ComplaintKind::kLostPeer;
  if (!lost && !trial.complaint->operation.empty()) describe(waiting, lines);
  if (lines.size() >= kFindingLinesMax) lines.resize(kFindingLinesMax - 1);
  lines.push_back(said);
  return lines;
}

std::string likely(const Trial& trial) {
  if (trial.odd.empty()) {
    const bool all = trial.silent.empty() && trial.witnesses.size() > 1;
    return all && trial.complaint->kind == ComplaintKind::kCollective
               ? "the ranks called different collectives or a different number of them, or the "
                 "network between them failed"
               : "";
  }
  if (trial.odd.front()->facts.state == "T") {
    return "something stopped it: SIGSTOP, a debugger, the batch system";
  }
  if (trial.complaint->kind == ComplaintKind::kRendezvous && all_absent(trial.odd)) {
    const bool one = trial.odd.size() == 1;
    return std::string(one ? "it has" : "they have") + " not called init_process_group";
  }
  if (all_succeeded(trial.odd)) {
    return "the ranks took a different number of steps, or an early exit(0)";
  }
  return {};
}

std::string others(const Trial& trial) {
  const Ranks rest = without(trial.witnesses, trial.odd);
  if (rest.empty() || trial.odd.empty()) return {};
  const bool one = rest.size() == 1;
  return rank_list(numbers(rest)) + " gave up afterwards; " +
         (one ? "it is a witness, not the cause" : "they are witnesses, not the cause");
}

std::string headline(const Trial& trial) {
  switch (trial.complaint->kind) {
    case ComplaintKind::kCollective:
      return collective_text(trial);
    case ComplaintKind::kLostPeer:
      return lost_text(trial);
    case ComplaintKind::kRendezvous:
      return rendezvous_text(trial);
  }
  return {};
}

}  // namespace

bool is_absent(const RankOnHost& rank) {
  const auto& [end, store] = std::tie(rank.facts.end, rank.facts.store);
  return end == RankEnd::kRuns && store.known && store.ports.empty() && !rank.facts.complaint;
}

std::string rank_list(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  std::size_t ranges = 0;
  for (std::size_t i = 0; i < ranks.size(); ++ranges) {
    if (ranges == kRangesMax) return text + " and " + std::to_string(ranks.size() - i) + " others";
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (ranges > 0) text += ", ";
    text += std::to_string(ranks[i]);
    if (last > i) text += (last == i + 1 ? ", " : "-") + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}

Finding tell(const Trial& trial) {
  Finding finding;
  finding.code = code_of(trial.complaint->kind);
  finding.text = headline(trial);
  finding.ranks = numbers(trial.odd);
  finding.evidence = evidence(trial);
  finding.likely = likely(trial);
  finding.others = others(trial);
  return finding;
}

}  // namespace ddprun::round

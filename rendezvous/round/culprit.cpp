#include "rendezvous/round/culprit.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string_view>
#include <tuple>

#include "rendezvous/round/culprit_text.hpp"

namespace ddprun::round {

namespace {

using Predicate = std::function<bool(const RankOnHost&)>;

bool complains(const RankOnHost& rank) {
  return rank.facts.complaint.has_value();
}

bool succeeded(const RankOnHost& rank) {
  return rank.facts.end == RankEnd::kSucceeded;
}

bool is_stopped(const RankOnHost& rank) {
  return rank.facts.state == "T" || rank.facts.state == "t";
}

bool is_uninterruptible(const RankOnHost& rank) {
  return rank.facts.state == "D";
}

// A thread that waits for other ranks is in one of these, or computes.
bool waits_elsewhere(const RankOnHost& rank) {
  static constexpr std::array<std::string_view, 12> kMayBeACollective{
      "futex",       "poll",         "ppoll",    "select",  "pselect6", "epoll_wait",
      "epoll_pwait", "epoll_pwait2", "recvfrom", "recvmsg", "ioctl",    "sched_yield"};
  const std::string& call = rank.facts.waits_in;
  return !call.empty() && std::find(kMayBeACollective.begin(), kMayBeACollective.end(), call) ==
                              kMayBeACollective.end();
}

Ranks those(const Ranks& ranks, const Predicate& predicate) {
  Ranks found;
  for (const RankOnHost* rank : ranks) {
    if (predicate(*rank)) found.push_back(rank);
  }
  return found;
}

// What only some of them do sets these apart.
Ranks narrowed(const Ranks& ranks, const Predicate& predicate) {
  Ranks found = those(ranks, predicate);
  return found.empty() ? ranks : found;
}

Ranks accused(const Ranks& witnesses, const Ranks& silent) {
  return those(silent, [&](const RankOnHost& rank) {
    return std::any_of(witnesses.begin(), witnesses.end(), [&](const RankOnHost* witness) {
      const auto& named = witness->facts.complaint->accused;
      return std::find(named.begin(), named.end(), rank.facts.rank.value()) != named.end();
    });
  });
}

// By evidence of what a rank does, the strongest first; what is left is silence alone.
Ranks silent_culprits(const Ranks& witnesses, const Ranks& silent) {
  for (const auto& set_apart : {accused(witnesses, silent), those(silent, is_stopped),
                                those(silent, succeeded), those(silent, is_uninterruptible)}) {
    if (!set_apart.empty()) return set_apart;
  }
  Ranks odd = narrowed(silent, waits_elsewhere);
  // Others may merely not have come to their own time-out.
  const bool told_apart = odd.size() < silent.size();
  const std::size_t all = witnesses.size() + silent.size();
  const bool minority = told_apart ? 2 * odd.size() <= all : odd.size() <= witnesses.size();
  return minority ? odd : Ranks{};
}

// All gave up: one is behind the others, or somewhere else.
Ranks odd_witnesses(const Ranks& witnesses) {
  std::map<int, Ranks> by_sequence;
  using Place = std::tuple<std::string, std::string>;
  std::map<Place, Ranks> by_place;
  for (const RankOnHost* witness : witnesses) {
    const Complaint& complaint = *witness->facts.complaint;
    if (complaint.kind == ComplaintKind::kLostPeer) continue;
    if (complaint.sequence) by_sequence[*complaint.sequence].push_back(witness);
    if (!complaint.operation.empty()) {
      by_place[{complaint.operation, complaint.place}].push_back(witness);
    }
  }
  if (by_sequence.size() > 1) {
    Ranks behind = by_sequence.begin()->second;
    return 2 * behind.size() <= witnesses.size() ? behind : Ranks{};
  }
  if (by_place.size() != 2) return {};
  const Ranks& one = by_place.begin()->second;
  const Ranks& other = by_place.rbegin()->second;
  if (one.size() == other.size()) return {};
  return one.size() < other.size() ? one : other;
}

// A rank that loses its connection may have lost it to one that gave up waiting.
const Complaint& main_complaint(const Complaint& first, const Ranks& witnesses) {
  if (first.kind != ComplaintKind::kLostPeer) return first;
  for (const RankOnHost* witness : witnesses) {
    const Complaint& complaint = *witness->facts.complaint;
    if (complaint.kind != ComplaintKind::kLostPeer) return complaint;
  }
  return first;
}

}  // namespace

bool is_cause(const WorkerExit& later, const WorkerExit& first) {
  return first.complaint && !later.complaint && !later.status.success();
}

std::optional<Finding> find_culprit(const WorkerExit& first, const std::vector<RankOnHost>& ranks,
                                    int world_size) {
  if (!first.complaint || world_size < 2) return std::nullopt;
  Trial trial;
  trial.first = &first;
  trial.world_size = world_size;
  for (const RankOnHost& rank : ranks) {
    (complains(rank) ? trial.witnesses : trial.silent).push_back(&rank);
  }
  trial.complaint = &main_complaint(*first.complaint, trial.witnesses);
  if (trial.complaint->kind == ComplaintKind::kLostPeer) {
    trial.odd = those(trial.silent, succeeded);
  } else if (!trial.silent.empty()) {
    trial.odd = silent_culprits(trial.witnesses, trial.silent);
  } else if (static_cast<int>(ranks.size()) == world_size) {
    trial.odd = odd_witnesses(trial.witnesses);
  }
  return tell(trial);
}

}  // namespace ddprun::round

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

// How long before the others began to wait a rank may have raised what kept it from coming.
constexpr std::chrono::milliseconds kRaisedBeforeMax{1000};

bool complains(const RankOnHost& rank) {
  return rank.facts.complaint.has_value();
}

bool succeeded(const RankOnHost& rank) {
  return rank.facts.end == RankEnd::kSucceeded;
}

bool has_raised(const RankOnHost& rank) {
  return !rank.facts.raised.empty() && !rank.facts.raised.starts_with(kInThread);
}

// It waited for the others while it handled an exception of its own, which they did not have.
bool has_raised_first(const RankOnHost& rank) {
  return complains(rank) && has_raised(rank);
}

// While the others waited, or a little before: an older exception was survived.
Predicate has_raised_within(std::chrono::milliseconds limit) {
  return [limit](const RankOnHost& rank) {
    const bool has = has_raised(rank) && rank.facts.end == RankEnd::kRuns;
    return has && (!rank.facts.silent || *rank.facts.silent <= limit);
  };
}

Predicate has_raised_in(const Complaint& complaint) {
  const auto& limit = complaint.limit;
  return has_raised_within(limit.count() == 0 ? kRaisedMax
                                              : limit + std::max(kRaisedBeforeMax, limit / 10));
}

bool is_stopped(const RankOnHost& rank) {
  return rank.facts.state == "T" || rank.facts.state == "t";
}

bool is_uninterruptible(const RankOnHost& rank) {
  return rank.facts.state == "D";
}

// Where the system call may not be read; the names differ between kernels.
bool sleeps_in(const std::string& channel) {
  static constexpr std::array<std::string_view, 4> kElsewhere{"nanosleep", "pipe_read", "nfs_",
                                                              "fuse_"};
  return std::any_of(kElsewhere.begin(), kElsewhere.end(), [&](std::string_view name) {
    return channel.find(name) != std::string::npos;
  });
}

bool is_connected(const RankOnHost& rank) {
  return !rank.facts.store.ports.empty();
}

// A thread that waits for other ranks is in one of these, or computes.
bool waits_elsewhere(const RankOnHost& rank) {
  static constexpr std::array<std::string_view, 12> kMayBeACollective{
      "futex",       "poll",         "ppoll",    "select",  "pselect6", "epoll_wait",
      "epoll_pwait", "epoll_pwait2", "recvfrom", "recvmsg", "ioctl",    "sched_yield"};
  const std::string& call = rank.facts.waits_in;
  if (call.empty()) return sleeps_in(rank.facts.channel);
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

bool names(const RankOnHost& witness, const RankOnHost& other) {
  const auto& named = witness.facts.complaint->accused;
  return std::find(named.begin(), named.end(), other.facts.rank.value()) != named.end();
}

Ranks accused(const Ranks& witnesses, const Ranks& silent) {
  return those(silent, [&](const RankOnHost& rank) {
    return std::any_of(witnesses.begin(), witnesses.end(),
                       [&](const RankOnHost* witness) { return names(*witness, rank); });
  });
}

// Those that the witnesses name. A complaint of a rendezvous names one rank of those missing.
Ranks named_culprits(ComplaintKind kind, const Ranks& witnesses, const Ranks& silent) {
  const Ranks named = accused(witnesses, silent);
  const bool one_of_many = kind == ComplaintKind::kRendezvous && !named.empty() &&
                           those(named, is_absent).size() == named.size() &&
                           !those(silent, is_connected).empty();
  return one_of_many ? those(silent, is_absent) : named;
}

bool waits_at_store(const RankOnHost& rank) {
  return rank.wait.has_value();
}

// A rank that computes while its peers wait is on its way to them. NCCL waits with a busy loop.
bool computes(const RankOnHost& rank) {
  const auto& [cpu, watched] = std::tie(rank.facts.cpu, rank.facts.watched);
  return cpu && watched && *watched >= kCpuWatchedMin && 2 * *cpu >= *watched;
}

bool is_asleep(const RankOnHost& rank) {
  const auto& [cpu, watched] = std::tie(rank.facts.cpu, rank.facts.watched);
  return cpu && watched && *watched >= kCpuWatchedMin && 10 * *cpu <= *watched;
}

// Those that compute while all others sleep; all of them where that does not tell them apart.
Ranks computing(const Ranks& ranks) {
  Ranks odd = those(ranks, computes);
  const bool clear = odd.size() + those(ranks, is_asleep).size() == ranks.size();
  return odd.empty() || !clear ? ranks : odd;
}

// What tells ranks apart that are neither stopped nor gone, the strongest first.
Ranks odd_by_activity(ComplaintKind kind, bool busy_waits, const Ranks& silent) {
  Ranks odd = silent;
  if (kind == ComplaintKind::kRendezvous) {
    if (!those(odd, is_connected).empty()) odd = narrowed(odd, is_absent);
    // Of those that are there, the others wait for what these have not set yet.
    if (!those(odd, waits_at_store).empty()) {
      odd = narrowed(odd, [](const RankOnHost& rank) { return !waits_at_store(rank); });
    }
  }
  odd = narrowed(odd, waits_elsewhere);
  if (odd.size() == silent.size() && !busy_waits) odd = computing(odd);
  if (odd.size() == silent.size() && kind == ComplaintKind::kCollective) {
    odd = narrowed(odd, waits_at_store);
  }
  return odd;
}

// The few that did not complain, if all of them wait for something else than other ranks: they may
// have closed their connections.
Ranks minority_elsewhere(const Ranks& silent, std::size_t all) {
  const bool are_elsewhere = std::all_of(
      silent.begin(), silent.end(), [](const RankOnHost* rank) { return waits_elsewhere(*rank); });
  return are_elsewhere && 2 * silent.size() < all ? silent : Ranks{};
}

// By evidence of what a rank does, the strongest first; what is left is silence alone.
Ranks silent_culprits(const Complaint& complaint, const Ranks& witnesses, const Ranks& silent) {
  for (const auto& set_apart :
       {named_culprits(complaint.kind, witnesses, silent), those(silent, is_stopped),
        those(silent, succeeded), those(silent, has_raised_in(complaint)),
        those(silent, is_uninterruptible)}) {
    if (!set_apart.empty()) return set_apart;
  }
  const bool busy_waits = complaint.sequence.has_value();  // NCCL's watchdog has numbers
  Ranks odd = odd_by_activity(complaint.kind, busy_waits, silent);
  // Others may merely not have come to their own time-out.
  const bool told_apart = odd.size() < silent.size();
  const std::size_t all = witnesses.size() + silent.size();
  const bool minority = told_apart ? 2 * odd.size() <= all : odd.size() <= witnesses.size();
  return minority ? odd : Ranks{};
}

// A barrier that is monitored names rank 0, which named the one that was late.
bool disagrees_with(const RankOnHost& witness, const RankOnHost& other) {
  return names(witness, other) && witness.facts.complaint->operation != "monitoredBarrier";
}

// Each names a rank that names it.
Ranks disagreeing(const Ranks& witnesses) {
  return those(witnesses, [&](const RankOnHost& rank) {
    return std::any_of(witnesses.begin(), witnesses.end(), [&](const RankOnHost* other) {
      return disagrees_with(rank, *other) && disagrees_with(*other, rank);
    });
  });
}

// Of ranks that disagree most name the one that differs.
Ranks dissenters(const Ranks& witnesses) {
  return those(disagreeing(witnesses), [&](const RankOnHost& rank) {
    const auto accusers =
        std::count_if(witnesses.begin(), witnesses.end(),
                      [&](const RankOnHost* other) { return disagrees_with(*other, rank); });
    return 2 * static_cast<std::size_t>(accusers) > witnesses.size();
  });
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

// Those that waited while they handled an exception of their own. Where all witnesses did, that is
// how the program works; and a silent rank that is kept somewhere else explains more.
Ranks raised_first(const Ranks& witnesses, const Ranks& silent) {
  Ranks raised = those(witnesses, has_raised_first);
  const bool is_usual = raised.size() > 1 && raised.size() == witnesses.size();
  const bool is_explained = !accused(witnesses, silent).empty() ||
                            std::any_of(silent.begin(), silent.end(), [](const RankOnHost* rank) {
                              return is_stopped(*rank) || succeeded(*rank) ||
                                     is_uninterruptible(*rank) || waits_elsewhere(*rank) ||
                                     computes(*rank) || has_raised(*rank);
                            });
  return is_usual || is_explained ? Ranks{} : raised;
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

bool is_client(const StoreWait& wait, const RankOnHost& rank) {
  const StoreLink& store = rank.facts.store;
  return store.address == wait.address &&
         std::find(store.ports.begin(), store.ports.end(), wait.port) != store.ports.end();
}

}  // namespace

void join_waits(std::vector<RankOnHost>& ranks, const std::vector<StoreWait>& waits) {
  for (const StoreWait& wait : waits) {
    const auto rank = std::find_if(ranks.begin(), ranks.end(), [&](const RankOnHost& candidate) {
      return is_client(wait, candidate);
    });
    if (rank == ranks.end()) continue;
    if (!rank->wait || rank->wait->waited < wait.waited) rank->wait = wait;
  }
}

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
  if (!trial.complaint->key.empty()) return tell(trial);  // any rank may have to set it
  if (!disagreeing(trial.witnesses).empty()) {
    trial.odd = dissenters(trial.witnesses);
    trial.disagree = true;
  } else if (Ranks raised = raised_first(trial.witnesses, trial.silent); !raised.empty()) {
    trial.odd = std::move(raised);
  } else if (trial.complaint->kind == ComplaintKind::kLostPeer) {
    trial.odd = those(trial.silent, succeeded);
    if (trial.odd.empty()) trial.odd = those(trial.silent, has_raised_within(kRaisedMax));
    if (trial.odd.empty()) trial.odd = minority_elsewhere(trial.silent, ranks.size());
  } else if (!trial.silent.empty()) {
    trial.odd = silent_culprits(*trial.complaint, trial.witnesses, trial.silent);
  } else if (static_cast<int>(ranks.size()) == world_size) {
    trial.odd = odd_witnesses(trial.witnesses);
  }
  return tell(trial);
}

}  // namespace ddprun::round

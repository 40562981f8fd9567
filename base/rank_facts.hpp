// RankFacts: what is known of one rank when a round fails: what it printed about the others, and
// what it did itself. A rank that complains of the others is a witness; the culprit is often the
// one that prints nothing. Plain data: the agent collects it, the wire carries it, and
// rendezvous/round/culprit.hpp judges it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/stack_groups.hpp"
#include "base/types.hpp"

namespace ddprun {

/// What a rank complains of, as its output says it.
enum class ComplaintKind : std::uint8_t {
  kCollective,  // a collective or a barrier did not complete in time
  kLostPeer,    // the connection to another rank ended
  kRendezvous,  // the other ranks, or a key in the store, did not arrive in time
};

/// The code of the report about it.
[[nodiscard]] constexpr const char* code_of(ComplaintKind kind) {
  switch (kind) {
    case ComplaintKind::kCollective:
      return "W-COLLECTIVE";
    case ComplaintKind::kLostPeer:
      return "W-PEER";
    case ComplaintKind::kRendezvous:
      return "W-RENDEZVOUS";
  }
  return "W-EXIT";
}
/// Why a rank with that complaint gave up, behind how it ended: it is a witness.
[[nodiscard]] constexpr const char* after_text(ComplaintKind kind) {
  switch (kind) {
    case ComplaintKind::kCollective:
      return " after a collective with other ranks did not complete";
    case ComplaintKind::kLostPeer:
      return " after it lost the connection to another rank";
    case ComplaintKind::kRendezvous:
      return " after other ranks did not arrive";
  }
  return "";
}

// An exception with which the output of a rank ends, and that is older, was survived.
inline constexpr std::chrono::milliseconds kRaisedMax{60'000};
// Ranks that one complaint names; more are not kept.
inline constexpr std::size_t kAccusedMax = 16;
// Ranks of one node whose facts are sent; those that say least about the culprit are left out.
inline constexpr std::size_t kRankFactsMax = 64;
// Sequence numbers of collectives; a larger one counts as unknown.
inline constexpr int kSequenceMax = 1 << 30;

struct Complaint {
  ComplaintKind kind = ComplaintKind::kCollective;
  std::string line{};                  // as it was printed, cut
  std::string operation{};             // "ALLREDUCE", "all_reduce"; empty: unknown
  std::string place{};                 // in the program: "train.py:310"; empty: unknown
  std::optional<int> sequence{};       // of the collective
  std::chrono::milliseconds limit{0};  // what it waited; 0: unknown
  std::vector<int> accused{};          // ranks that it names as absent
  std::string key{};                   // of the store, that the program waited for; empty: none
  // The exception that it raised first, if it complained while it handled that; not sent, see
  // RankFacts::raised. Empty: none.
  std::string before{};
  friend bool operator==(const Complaint&, const Complaint&) = default;
};

/// How far a rank had come, apart from what ddprun did to it.
enum class RankEnd : std::uint8_t {
  kRuns,       // it ran until ddprun stopped it, if it did
  kSucceeded,  // it exited with code 0, by itself
  kFailed,     // it failed by itself
};

/// The connections of a rank's processes to the store of its round.
struct StoreLink {
  bool known = false;        // its processes could be looked at
  std::string address{};     // of this end, numeric
  std::vector<int> ports{};  // of this end, at most kStorePortsMax; none: it is not connected
  friend bool operator==(const StoreLink&, const StoreLink&) = default;
};
inline constexpr std::size_t kStorePortsMax = 4;

// Before an exception that ended a thread of a rank: it need not keep the rank from the others.
inline constexpr std::string_view kInThread = "in a thread: ";

struct RankFacts {
  Rank rank{0};
  LocalRank local_rank{0};
  int pid = 0;
  RankEnd end = RankEnd::kRuns;
  std::string state{};     // of its process, as /proc has it: "T"; empty: unknown
  std::string waits_in{};  // the system call that it waits in: "clock_nanosleep"; empty: unknown
  std::string channel{};   // of the kernel, where it waits: "futex_wait_queue"; empty: unknown
  std::optional<std::chrono::milliseconds> cpu{};      // that its processes used while they ...
  std::optional<std::chrono::milliseconds> watched{};  // ... were watched so long before
  StoreLink store{};
  std::optional<std::chrono::milliseconds> silent{};  // since its last output; none: not seen
  std::optional<std::chrono::milliseconds> exited{};  // how long before the look at it
  std::optional<Complaint> complaint{};
  // The exception whose traceback its stderr ends with; of one that complains, the exception that
  // it raised before it waited for the others. Behind kInThread one of a thread. Empty: none.
  std::string raised{};
  friend bool operator==(const RankFacts&, const RankFacts&) = default;
};

/// What the facts of all ranks say about a failure that a witness reported.
struct Finding {
  std::string code{};                   // stable, for tools: "W-COLLECTIVE"
  std::string text{};                   // the headline
  std::vector<int> ranks{};             // the culprits; empty: undecided
  std::vector<std::string> evidence{};  // at most kFindingLinesMax
  std::string likely{};                 // a guess; empty: none
  std::string others{};                 // about the witnesses
  std::vector<StackGroup> places{};     // of the ranks of a node, for one list of all
  std::string no_restart{};             // why no restart is to follow; empty: one may
  friend bool operator==(const Finding&, const Finding&) = default;
};
// Culprits that a finding lists; its text counts the others.
inline constexpr std::size_t kFindingRanksMax = 64;
// Lines of evidence of a finding.
inline constexpr std::size_t kFindingLinesMax = 6;

}  // namespace ddprun

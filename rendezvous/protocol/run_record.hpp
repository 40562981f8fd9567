// RunRecord: what has to be known of a run when every coordinator of it is gone: kept in etcd.
// Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/protocol/messages.hpp"

namespace ddprun {

/// Runs of one id that have ended and are remembered; a node of an earlier one is told so.
inline constexpr std::size_t kEndedRunsMax = 8;

struct RunRecord {
  struct Verdict {
    int exit_code = 0;
    std::string text;
    int nodes = 0;  // of the last round
    /// Of the coordinator that gave it (docs/internals/PROTOCOL.md); 0: not known.
    std::int64_t term = 0;
    friend bool operator==(const Verdict&, const Verdict&) = default;
  };
  /// What its first node asked for. Of the command only the fingerprint: commands may have secrets.
  struct Agreed {
    protocol::Terms terms;  // without the list of hosts
    std::string fingerprint{};
    std::string host{};  // of that node
    std::string address{};
    friend bool operator==(const Agreed&, const Agreed&) = default;
  };
  /// A run of the same id before this one.
  struct Ended {
    int round = 0;  // its last one, or the highest number that it may have used
    Verdict verdict{};
    friend bool operator==(const Ended&, const Ended&) = default;
  };
  int round = 0;     // the highest number that any coordinator has used or heard of
  int restarts = 0;  // used so far
  std::optional<Verdict> over{};
  std::optional<Agreed> agreed{};  // since it has had a round
  std::vector<Ended> before{};     // oldest first, at most kEndedRunsMax
  friend bool operator==(const RunRecord&, const RunRecord&) = default;
};

}  // namespace ddprun

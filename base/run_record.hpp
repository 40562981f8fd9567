// RunRecord: what has to be known of a run when every coordinator of it is gone: kept in etcd.
// Plain data.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ddprun {

/// Runs of one id that have ended and are remembered; a node of an earlier one is told so.
inline constexpr std::size_t kEndedRunsMax = 8;

struct RunRecord {
  struct Verdict {
    int exit_code = 0;
    std::string text;
    int nodes = 0;          // of the last round
    std::int64_t term = 0;  // of the coordinator that gave it (docs/PROTOCOL.md); 0: not known
    friend bool operator==(const Verdict&, const Verdict&) = default;
  };
  /// What its first node asked for. Of the command only the fingerprint: commands may have secrets.
  struct Terms {
    using Milliseconds = std::chrono::milliseconds;
    int nodes_min = 1;
    int nodes_max = 1;
    int max_restarts = 0;
    Milliseconds join_timeout{0};
    Milliseconds last_call_timeout{0};
    Milliseconds keep_alive_interval{0};
    int keep_alive_max_attempt = 1;
    bool commands_may_differ = false;
    bool is_named = false;
    std::optional<Milliseconds> min_uptime{};
    std::optional<Milliseconds> hang_timeout{};
    std::string fingerprint{};
    std::string program{};  // the same, without the arguments
    std::string host{};     // of that node
    std::string address{};
    friend bool operator==(const Terms&, const Terms&) = default;
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
  std::optional<Terms> terms{};  // since it has had a round
  std::vector<Ended> before{};   // oldest first, at most kEndedRunsMax
  friend bool operator==(const RunRecord&, const RunRecord&) = default;
};

}  // namespace ddprun

// What a run looks like from outside, for GET /status and for tests. Plain data.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace ddprun::round {

enum class Phase : std::uint8_t {
  kForming,     // waits for agents
  kRebuilding,  // started empty, waits for the members of a round it heard of
  kRunning,     // a round lives
  kStopping,    // the verdict is known, workers are ending
  kOver,        // the verdict was sent
};

[[nodiscard]] constexpr const char* name_of(Phase phase) {
  constexpr std::array kNames{"forming", "rebuilding", "running", "stopping", "over"};
  return kNames.at(static_cast<std::size_t>(phase));
}

struct Counters {
  std::uint64_t rounds = 0;  // started here
  std::uint64_t joins = 0;
  std::uint64_t losses = 0;
  std::uint64_t refusals = 0;
  std::uint64_t held_back = 0;  // joins of nodes that had come and gone too often (JoinPace)
  std::uint64_t stale = 0;      // messages of another round, or from a link without an agent
};

struct NodeStatus {
  std::string host;
  std::string address;
  int group_rank = -1;  // -1: a spare, or no round yet
  Rank rank_base{0};
  int workers = 0;
  protocol::NodeState state = protocol::NodeState::kIdle;
  Duration silent{};
  std::string version{};  // of its ddprun; empty: older than that it tells so
};

/// One that the run had, and has not any more.
struct GoneNode {
  std::string host;
  std::string address;
  std::string ranks;  // in its last round here; empty: none
  std::string version;
  std::string why;
  Duration ago{};
};

struct Status {
  RunId run_id;
  Phase phase = Phase::kForming;
  std::string why;
  protocol::RoundStamp round;
  RestartCount restarts{0};
  protocol::Terms terms;
  std::vector<NodeStatus> nodes;  // by group rank, then arrival
  std::vector<int> missing;       // node ranks no agent has, if the others gave theirs
  Counters counters;
  std::optional<protocol::Done> verdict;  // from stopping on
  std::vector<GoneNode> gone;             // oldest first, the last kGoneMax of them
};

/// A node that leaves at the end of a run is not missing.
[[nodiscard]] inline bool waits_for_nodes(const Status& status) {
  return status.phase != Phase::kStopping && status.phase != Phase::kOver;
}

}  // namespace ddprun::round

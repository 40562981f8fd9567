// Strong types for the numbers that must not be mixed up: two ints of different meaning do not
// compile. Plain values, no thread rule.
#pragma once

#include <compare>
#include <string>

namespace ddprun {

template <class Tag, class Value>
class Strong {
 public:
  Strong() = default;
  constexpr explicit Strong(Value value) : value_(std::move(value)) {}
  [[nodiscard]] constexpr const Value& value() const { return value_; }
  constexpr auto operator<=>(const Strong&) const = default;

 private:
  Value value_{};
};

using RunId = Strong<struct RunIdTag, std::string>;      // --rdzv-id; names one training
using AgentId = Strong<struct AgentIdTag, std::string>;  // random, one per agent process
using Round = Strong<struct RoundTag, int>;              // from 1; one start of all workers
using Rank = Strong<struct RankTag, int>;                // from 0, over all nodes
using LocalRank = Strong<struct LocalRankTag, int>;      // from 0, on this node
using WorldSize = Strong<struct WorldSizeTag, int>;      // workers of all nodes
using RestartCount = Strong<struct RestartTag, int>;     // restarts used so far, of the run

}  // namespace ddprun

// Strong types for numbers that must not be mixed up: passing a Rank where a LocalRank is expected
// does not compile.
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
  // clang-tidy before 16 takes the comparison with zero inside for a null pointer.
  constexpr auto operator<=>(const Strong&) const = default;  // NOLINT(modernize-use-nullptr)

 private:
  Value value_{};
};

using RunId = Strong<struct RunIdTag, std::string>;      // --rdzv-id; identifies one training job
using AgentId = Strong<struct AgentIdTag, std::string>;  // random, one per agent process
using Round = Strong<struct RoundTag, int>;              // from 1; one start of the worker group
using Rank = Strong<struct RankTag, int>;                // from 0, over all nodes
using LocalRank = Strong<struct LocalRankTag, int>;      // from 0, on this node
using WorldSize = Strong<struct WorldSizeTag, int>;      // number of workers on all nodes
using RestartCount = Strong<struct RestartTag, int>;     // restarts of the run so far

}  // namespace ddprun

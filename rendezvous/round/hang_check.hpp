// HangCheck: whether the ranks of all nodes of a round hang. A node says how long its own have made
// no progress; when all have done so for --hang-timeout, each is asked to look once more, since
// what one said may be older than a move of its ranks. Then all give their ranks up, and what they
// found is one finding. A success of a node is progress of all: others may have waited for it, and
// have the whole limit to finish. Durations are compared, never clocks. Pure, no thread rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/clock.hpp"
#include "base/worker_exit.hpp"

namespace ddprun::round {

/// A node of the round; the number is never used twice.
using NodeId = std::uint64_t;

class HangCheck {
 public:
  /// What the nodes whose ranks run have to do next.
  enum class Order { kNothing, kLook, kGiveUp };

  struct Word {
    Duration lasts{};           // so long no rank of the node has made progress
    Duration limit{};           // --hang-timeout
    std::optional<int> echo{};  // of the question that this answers
  };
  void says(NodeId node, const Word& word, TimePoint now);
  /// Its ranks have failed, or what it says next comes over another link.
  void forget(NodeId node);
  /// Its ranks have succeeded: that is progress, and the others have the whole limit from now.
  void succeeded(NodeId node, TimePoint now);
  /// What the nodes gave up was not enough to end the round.
  void begin_again();

  /// `nodes`: whose ranks run, or are to run. kLook: asked() follows. kGiveUp once.
  [[nodiscard]] Order next(int nodes);
  void asked(int question, TimePoint now);

  /// Since kGiveUp: what a node gives up is for this check.
  [[nodiscard]] bool gives_up() const { return gives_up_; }
  /// Whether some have not done so.
  [[nodiscard]] bool waits() const { return !quiet_.empty(); }

 private:
  std::optional<TimePoint> succeeded_at_{};  // the last node that has
  std::set<NodeId> quiet_;
  std::set<NodeId> still_;  // that have answered the question
  int question_ = 0;        // 0: none was asked
  TimePoint asked_at_{};
  bool gives_up_ = false;
};

/// What all nodes found becomes one finding, in the exit of the node with the odd rank: which that
/// is.
[[nodiscard]] std::size_t merge_hangs(std::vector<WorkerExit>& exits);

}  // namespace ddprun::round

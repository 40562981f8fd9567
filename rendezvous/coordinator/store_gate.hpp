// StoreGate: which clients have to wait for a fresh store. With a fixed master port the store of a
// round is found where that of the round before was: a worker that has not ended yet must not get a
// key of the wrong round. A node says when none of its workers is left. Pure, single owner.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "rendezvous/round/run.hpp"

namespace ddprun::coordinator {

class StoreGate {
 public:
  enum class Answer {
    kWelcome,
    kWaits,   // its node is not known, or others have its address: it may be of either round
    kIsLate,  // unless its node's word is still on its way
  };

  /// From now on the store is that of a round after `ended`.
  void begin(Round ended, const std::vector<round::LeftOnNode>& nodes);
  /// Asks again about each node that may have workers of the ended round. Whether one has none now.
  [[nodiscard]] bool look(const round::Run& run);

  [[nodiscard]] bool is_open() const { return waits_for_.empty(); }
  [[nodiscard]] Round ended() const { return ended_; }
  /// The hosts of the nodes that it waits for, for people; of many, some.
  [[nodiscard]] std::string awaited() const;
  [[nodiscard]] Answer of(const std::string& address) const;

 private:
  struct Nodes {
    int all = 0;
    int left = 0;
  };
  Round ended_{0};
  std::vector<round::LeftOnNode> waits_for_;
  std::unordered_map<std::string, Nodes> by_address_;
};

}  // namespace ddprun::coordinator

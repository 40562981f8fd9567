// RankZero: the process that takes part in the default process group of a store as rank 0, and
// whether another one does so at the same time. Rank 0 is watched because every backend announces
// it, and because the ranks that a script counts itself begin with it. Pure. Thread rule: one
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/store_facts.hpp"
#include "rendezvous/store/waits.hpp"

namespace ddprun::store {

/// Whether a client that sets `key` is rank 0 of the default process group (torch 2.0 to 2.15):
/// Gloo sets `/default_pg/0//cpu//0/RANK`, NCCL and its like `/default_pg/0//cuda//N`, which only
/// rank 0 does.
[[nodiscard]] bool announces_rank_zero(std::string_view key);

class RankZero {
 public:
  /// The process of `connection` has announced itself. The two claims if another one has done so
  /// that is still connected: one that was replaced is not. A process may announce itself again.
  [[nodiscard]] std::optional<RankClaims> announced(ConnectionId connection, std::uint32_t process);
  void disconnected(ConnectionId connection);

 private:
  struct Claim {
    ConnectionId connection{};
    std::uint32_t process = 0;
  };
  std::optional<Claim> claim_{};
};

}  // namespace ddprun::store

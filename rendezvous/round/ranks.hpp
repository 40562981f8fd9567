// Who gets which ranks in a round. Pure functions over plain data.
// Global ranks are contiguous by group rank whatever the role, role ranks contiguous within a role,
// and nodes may have different numbers of workers (torch elastic's assignment, without its store
// traffic).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace ddprun::round {

/// What decides the place of one node.
struct Candidate {
  std::optional<int> previous;         // its group rank in the last round, if it was in it
  std::optional<int> node_rank;        // --node-rank
  std::optional<int> scheduler_index;  // Slurm's or the MPI starter's
  std::string_view host;
  std::uint64_t arrival = 0;  // unique, in order of the first hello
};

/// Whether --node-rank is the group rank: in a run of fixed size it is, in every round.
enum class Membership { kElastic, kFixed };

/// Indexes into `candidates` in group-rank order: survivors first and in their old order (so rank 0
/// stays while its node lives), then newcomers by node rank, scheduler index, natural host order,
/// arrival. With kFixed, if all have a node rank, it alone decides. Only the first `count` are in
/// order, in O(N log count): the others are spares, of which there may be many more.
[[nodiscard]] std::vector<std::size_t> group_order(const std::vector<Candidate>& candidates,
                                                   Membership membership, std::size_t count);

/// One node of a round, in group-rank order.
struct Slot {
  int local_world_size = 1;
  std::string role;
};

struct Placement {
  int group_rank = 0;
  int group_size = 1;
  Rank rank_base{0};
  WorldSize world_size{1};
  int role_rank_base = 0;
  int role_world_size = 1;
  friend bool operator==(const Placement&, const Placement&) = default;
};

/// The ranks of every slot, in the same order. Linear in the number of slots.
[[nodiscard]] std::vector<Placement> assign_ranks(const std::vector<Slot>& slots);

}  // namespace ddprun::round

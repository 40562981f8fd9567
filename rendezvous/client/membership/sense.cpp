#include "rendezvous/client/membership/sense.hpp"

#include "base/address.hpp"
#include "base/format.hpp"

namespace ddprun::client {

using namespace protocol;

namespace {

[[nodiscard]] std::string number(int value) {
  return std::to_string(value);
}

[[nodiscard]] std::string ranks_of(int base, int count) {
  return "ranks " + number(base) + "-" + number(base + count - 1);
}

[[nodiscard]] std::string wrong_place(const StartRound& start, const Terms& terms) {
  if (start.group_rank >= start.group_size) {
    return "node " + number(start.group_rank) + " of " + count_text(start.group_size, "node");
  }
  const bool compared = !terms.is_named;  // else the nodes of a run may have other limits
  if (compared && (start.group_size < terms.nodes_min || start.group_size > terms.nodes_max)) {
    return count_text(start.group_size, "node") + " where --nnodes is " + number(terms.nodes_min) +
           ":" + number(terms.nodes_max);
  }
  return "";
}

// Every node has at least one rank, and the nodes' ranks follow each other.
[[nodiscard]] std::string wrong_ranks(const StartRound& start, int own) {
  const int base = start.rank_base.value();
  const int world = start.world_size.value();
  const int behind = start.group_size - 1 - start.group_rank;
  std::string ranks = ranks_of(base, own) + " of " + number(world);
  if (base < start.group_rank || (start.group_rank == 0 && base != 0)) {
    return ranks + " on node " + number(start.group_rank);
  }
  if (base > world - own) return ranks;
  if (world - own - base < behind || (behind == 0 && base + own != world)) {
    return ranks + " on node " + number(start.group_rank) + " of " + number(start.group_size);
  }
  if (start.role_rank_base > base || start.role_rank_base > start.role_world_size - own ||
      start.role_world_size > world) {
    return "role " + ranks_of(start.role_rank_base, own) + " of " + number(start.role_world_size) +
           " in a world of " + number(world);
  }
  return "";
}

}  // namespace

std::string what_cannot_be(const StartRound& start, const Hello& own) {
  if (std::string wrong = wrong_place(start, own.terms); !wrong.empty()) return wrong;
  if (std::string wrong = wrong_ranks(start, own.local_world_size); !wrong.empty()) return wrong;
  // A node alone is not told its address.
  const bool is_alone = start.group_size == 1 && start.master_address.empty();
  if (!is_alone && !can_be_host(start.master_address)) {
    return "MASTER_ADDR \"" + start.master_address + "\"";
  }
  for (const Successor& successor : start.successors) {
    if (!can_be_host(successor.address)) return "a successor at \"" + successor.address + "\"";
  }
  return "";
}

std::string what_cannot_be(const Done& done, bool greeted) {
  if (done.exit_code != 0 || greeted) return "";
  return "the success of a run in which it has not greeted this node";
}

}  // namespace ddprun::client

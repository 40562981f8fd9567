// Who is right after the ranks of a run have changed: whose state all ranks take, and which ranks
// hold other bits than the rest. Pure.
//
// Step k is committed on a rank when its reduction of step k+1 has succeeded. That sum contains a
// contribution of every rank, and a rank contributes to k+1 after it has applied k; so no survivor
// is behind k+1, whichever ranks are lost, and k is never computed again. Until then k is not
// committed, although a rank has applied it: a loss in the reduction of k leaves ranks with k
// applied beside ranks without it. They are one step apart at most, and the one ahead is the
// source: its sum of k was complete. If only ranks without k survive, they compute k again, with
// the same samples.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ddprun::trainer {

/// What a rank brings to a round.
struct Offer {
  bool whole = false;        ///< it holds the state after `step` steps; a new process holds none
  std::uint64_t step = 0;    ///< steps applied
  std::uint64_t digest = 0;  ///< of the state
};

struct Source {
  int rank = 0;
  std::uint64_t digest = 0;
  bool of_all = false;  ///< all ranks hold this state: nothing is to be sent
};
/// The whole rank with the highest step, of several the lowest; nullopt: no rank is whole.
[[nodiscard]] std::optional<Source> choose_source(std::span<const Offer> offers);

struct Vote {
  std::optional<int> model;  ///< the lowest rank that holds what more than half hold; nullopt: tie
  std::vector<int> others;   ///< ranks that differ from it; of a tie: all that differ from rank 0
};
/// Element r is the digest of rank r.
[[nodiscard]] Vote vote_on(std::span<const std::uint64_t> digests);

}  // namespace ddprun::trainer

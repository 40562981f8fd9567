// State between ranks when a world begins: who has it, sending it, and the proof that all hold the
// same. Main thread. Errors: a failed collective throws, and then this rank has what it had before.
#pragma once

#include <initializer_list>
#include <optional>
#include <vector>

#include "trainer/train/session.hpp"

namespace ddprun::trainer {

/// Collective: the rank whose state all ranks take; nullopt if all processes are new.
[[nodiscard]] std::optional<Source> live_source(Session& session);

/// Collective: everything that training continues from: weights, buffers, momentum, position, sums
/// of metrics. Tensors are sent only if ranks differ. A rank keeps what it has until the digests of
/// all ranks are equal. A rank that receives other bits than were sent ends with a TrainerError,
/// and the others lose a peer.
void take_state(Session& session, const Source& source);

/// Collective, between two steps: a rank that holds other bits than the majority takes its state.
/// Returns the ranks that did. TrainerError on every rank if there is no majority.
std::vector<int> heal(Session& session);

/// Collective: the step, what the run knows of its best one, and the last test.
void share_progress(Session& session, int from);
/// Collective: rank 0 exports the best weights; if it does not have them, the next test becomes the
/// best.
void follow_the_leader(Session& session);

/// Collective: `own` of rank 0, of rank 1 and so on, equally many numbers each.
[[nodiscard]] std::vector<double> rows_of_ranks(Session& session,
                                                std::initializer_list<double> own);
/// Collective: the digest of every rank's state.
[[nodiscard]] std::vector<std::uint64_t> digests_of_ranks(Session& session, std::uint64_t own);

}  // namespace ddprun::trainer

#include "trainer/recover/agreement.hpp"

#include <algorithm>

namespace ddprun::trainer {

std::optional<Source> choose_source(std::span<const Offer> offers) {
  const Offer* best = nullptr;
  for (const auto& offer : offers) {
    if (offer.whole && (best == nullptr || offer.step > best->step)) best = &offer;
  }
  if (best == nullptr) return std::nullopt;
  const auto is_same = [&](const Offer& offer) {
    return offer.whole && offer.step == best->step && offer.digest == best->digest;
  };
  return Source{static_cast<int>(best - offers.data()), best->digest,
                std::ranges::all_of(offers, is_same)};
}

Vote vote_on(std::span<const std::uint64_t> digests) {
  Vote vote;
  auto agreed = digests.front();
  for (std::size_t rank = 0; rank < digests.size() && !vote.model; ++rank) {
    const auto same = static_cast<std::size_t>(std::ranges::count(digests, digests[rank]));
    if (same * 2 <= digests.size()) continue;
    vote.model = static_cast<int>(rank);
    agreed = digests[rank];
  }
  for (std::size_t rank = 0; rank < digests.size(); ++rank) {
    if (digests[rank] != agreed) vote.others.push_back(static_cast<int>(rank));
  }
  return vote;
}

}  // namespace ddprun::trainer

#include "rendezvous/store/rank_zero.hpp"

#include <algorithm>

namespace ddprun::store {

namespace {

/// Cuts the digits at the beginning off. Whether there were any.
bool take_number(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(end);
  return end > 0;
}

}  // namespace

bool announces_rank_zero(std::string_view key) {
  constexpr std::string_view kDefaultGroup = "/default_pg/0//";
  if (!key.starts_with(kDefaultGroup)) return false;
  key.remove_prefix(kDefaultGroup.size());
  const std::size_t device = key.find('/');
  if (device == 0 || device == std::string_view::npos) return false;
  key.remove_prefix(device);
  if (!key.starts_with("//")) return false;
  key.remove_prefix(2);
  // A communicator of NCCL, or an interface of Gloo and the rank. A keyed pair of NCCL ranks, a
  // subgroup, or what a program sets itself looks different.
  return take_number(key) && (key.empty() || key == "/0");
}

std::optional<RankClaims> RankZero::announced(ConnectionId connection, std::uint32_t process) {
  if (claim_ && claim_->process != process) return RankClaims{claim_->process, process};
  claim_ = Claim{connection, process};
  return std::nullopt;
}

void RankZero::disconnected(ConnectionId connection) {
  if (claim_ && claim_->connection == connection) claim_.reset();
}

}  // namespace ddprun::store

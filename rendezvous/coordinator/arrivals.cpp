#include "rendezvous/coordinator/arrivals.hpp"

#include <algorithm>
#include <iterator>

#include "base/assert.hpp"

namespace ddprun::coordinator {

void Unproven::add(std::uint64_t id, const std::string& network) {
  Network& own = networks_[network];
  const bool is_new = all_.try_emplace(id, One{network, own.all.insert(own.all.end(), id)}).second;
  DDPRUN_ASSERT(is_new);
}

void Unproven::remove(std::uint64_t id) {
  const auto found = all_.find(id);
  if (found == all_.end()) return;
  const auto network = networks_.find(found->second.network);
  network->second.all.erase(found->second.place);
  if (found->second.waits) --waiting_;
  if (network->second.all.empty()) networks_.erase(network);
  all_.erase(found);
}

std::uint64_t Unproven::loser() const {
  DDPRUN_ASSERT(!networks_.empty());
  const auto most =
      std::max_element(networks_.begin(), networks_.end(), [](const auto& left, const auto& right) {
        return left.second.all.size() < right.second.all.size();
      });
  return most->second.all.front();
}

void Unproven::want_turn(std::uint64_t id) {
  const auto found = all_.find(id);
  if (found == all_.end() || found->second.waits) return;
  found->second.waits = true;
  ++waiting_;
  networks_.at(found->second.network).waiting.push_back(id);
}

std::optional<std::uint64_t> Unproven::next_turn(TimePoint now) {
  if (waiting_ == 0 || now < free_at_) return std::nullopt;
  auto at = networks_.upper_bound(last_);
  for (std::size_t looked_at = 0; looked_at <= networks_.size(); ++looked_at) {
    if (at == networks_.end()) at = networks_.begin();
    std::deque<std::uint64_t>& waiting = at->second.waiting;
    while (!waiting.empty()) {
      const std::uint64_t id = waiting.front();
      waiting.pop_front();
      const auto found = all_.find(id);
      if (found == all_.end() || !found->second.waits) continue;
      found->second.waits = false;
      --waiting_;
      last_ = at->first;
      return id;
    }
    ++at;
  }
  return std::nullopt;
}

std::optional<TimePoint> Unproven::next_at() const {
  if (waiting_ == 0) return std::nullopt;
  return free_at_;
}

}  // namespace ddprun::coordinator

#include "rendezvous/coordinator/store_gate.hpp"

#include <algorithm>
#include <set>

namespace ddprun::coordinator {

namespace {
constexpr std::size_t kHostsNamed = 8;
}  // namespace

void StoreGate::begin(Round ended, const std::vector<round::LeftOnNode>& nodes) {
  ended_ = ended;
  waits_for_.clear();
  by_address_.clear();
  for (const round::LeftOnNode& node : nodes) {
    for (const std::string& address : std::set(node.addresses.begin(), node.addresses.end())) {
      ++by_address_[address].all;
      if (!node.may_have) ++by_address_[address].left;
    }
    if (node.may_have) waits_for_.push_back(node);
  }
}

bool StoreGate::look(const round::Run& run) {
  const auto has_left = [&](const round::LeftOnNode& node) {
    if (run.may_have(node.node, ended_)) return false;
    for (const std::string& address : std::set(node.addresses.begin(), node.addresses.end())) {
      ++by_address_[address].left;
    }
    return true;
  };
  return std::erase_if(waits_for_, has_left) > 0;
}

std::string StoreGate::awaited() const {
  std::string hosts;
  for (std::size_t i = 0; i < std::min(waits_for_.size(), kHostsNamed); ++i) {
    hosts += (hosts.empty() ? "" : ", ") + waits_for_[i].host;
  }
  const std::size_t more = waits_for_.size() - std::min(waits_for_.size(), kHostsNamed);
  return more == 0 ? hosts : hosts + " and " + std::to_string(more) + " more";
}

StoreGate::Answer StoreGate::of(const std::string& address) const {
  if (is_open()) return Answer::kWelcome;
  const auto found = by_address_.find(address);
  if (found == by_address_.end()) return Answer::kWaits;
  const Nodes& nodes = found->second;
  if (nodes.left == nodes.all) return Answer::kWelcome;
  return nodes.left == 0 ? Answer::kIsLate : Answer::kWaits;
}

}  // namespace ddprun::coordinator

#include "net/own_addresses.hpp"

#include <ifaddrs.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

#include "base/address.hpp"
#include "net/connection.hpp"

namespace ddprun::net {

namespace {

constexpr std::chrono::seconds kReadInterval{1};

template <class Visit>
void for_each_address(Visit visit) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(list, &::freeifaddrs);
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    sockaddr_in6 address{};
    std::memcpy(&address, one->ifa_addr,
                family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    visit(address);
  }
}

}  // namespace

std::vector<std::string> outward_addresses() {
  std::vector<std::string> all;
  for_each_address([&](const sockaddr_in6& address) {
    if (address.sin6_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&address.sin6_addr)) return;
    std::string text = address_text(address);
    if (is_loopback_literal(text) || std::find(all.begin(), all.end(), text) != all.end()) return;
    all.push_back(std::move(text));
  });
  return all;
}

bool OwnAddresses::has(const sockaddr_in6& peer) {
  const std::string text = address_text(peer);
  if (is_loopback_literal(text) || known_.contains(text)) return true;
  const TimePoint now = Clock::now();
  if (read_ != TimePoint{} && now - read_ < kReadInterval) return false;
  read_ = now;
  known_.clear();
  for_each_address([&](const sockaddr_in6& address) { known_.insert(address_text(address)); });
  return known_.contains(text);
}

}  // namespace ddprun::net

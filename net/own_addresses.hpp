// The addresses of this machine's interfaces, as literals without a zone; they may change while a
// process runs. Thread rule: one thread.
#pragma once

#include <netinet/in.h>

#include <string>
#include <unordered_set>
#include <vector>

#include "base/clock.hpp"

namespace ddprun::net {

/// Those from which other machines may see this one come: without loopback, and without link-local
/// ones of IPv6, of which every virtual interface has one. Empty if the system does not tell.
[[nodiscard]] std::vector<std::string> outward_addresses();

class OwnAddresses {
 public:
  /// Whether a connection from `peer` begins on this machine. Reads the interfaces again for an
  /// unknown address, at most once in a second.
  [[nodiscard]] bool has(const sockaddr_in6& peer);

 private:
  std::unordered_set<std::string> known_;
  TimePoint read_{};
};

}  // namespace ddprun::net

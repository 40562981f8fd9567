#include "rendezvous/coordinator/status_access.hpp"

#include "base/address.hpp"

namespace ddprun::coordinator {

std::optional<StatusAccess> parse_status_access(std::string_view word) {
  if (word == "off") return StatusAccess::kOff;
  if (word == "local") return StatusAccess::kLocal;
  if (word == "all") return StatusAccess::kAll;
  return std::nullopt;
}

bool may_ask(StatusAccess access, const std::string& address, const std::string& local_address) {
  if (access != StatusAccess::kLocal) return access == StatusAccess::kAll;
  return address == local_address || is_loopback_literal(address);
}

}  // namespace ddprun::coordinator

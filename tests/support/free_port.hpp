// A port for a test that must know it before somebody listens there.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <random>

namespace ddprun::test {

/// Nobody listens there. Below the range from which the kernel gives ports to
/// clients and to whoever wants any: a test that runs beside this one is not given it meanwhile.
inline std::uint16_t free_port() {
  std::random_device random;
  while (true) {
    const auto port = static_cast<std::uint16_t>(12'000 + random() % 17'000);
    const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    const auto* name = reinterpret_cast<const sockaddr*>(&address);
    const bool free = ::bind(probe, name, sizeof(address)) == 0;
    ::close(probe);
    if (free) return port;
  }
}

}  // namespace ddprun::test

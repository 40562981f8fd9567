// A free port, for a test that must know the port before a server listens on it.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <random>

namespace ddprun::test {

/// A port without a listener, below the ephemeral range: the kernel does not assign it to a client
/// or to a concurrent test that binds port 0.
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

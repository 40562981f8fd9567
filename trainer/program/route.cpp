#include "trainer/program/route.hpp"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "trainer/error.hpp"

namespace ddprun::trainer {

namespace {

class Socket {
 public:
  explicit Socket(int family) : fd_(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

// Empty if there is no route to this address. Connecting a datagram socket only consults the
// routing table.
std::string source_address(const addrinfo& target) {
  const Socket socket(target.ai_family);
  sockaddr_storage source{};
  socklen_t length = sizeof source;
  auto* raw = reinterpret_cast<sockaddr*>(&source);
  if (socket.fd() < 0 || ::connect(socket.fd(), target.ai_addr, target.ai_addrlen) != 0 ||
      ::getsockname(socket.fd(), raw, &length) != 0) {
    return {};
  }
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(raw, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return {};
  }
  return text.data();
}

}  // namespace

std::string local_address_towards(const Peer& peer) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(peer.host.c_str(), std::to_string(peer.port).c_str(), &hints, &found);
  if (error != 0) {
    throw TrainerError("MASTER_ADDR=" + peer.host + " does not resolve (" + ::gai_strerror(error) +
                       "); use an IP address, or a host name that resolves on this node");
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  for (const addrinfo* target = found; target != nullptr; target = target->ai_next) {
    auto address = source_address(*target);
    if (!address.empty()) return address;
  }
  throw TrainerError("no route from this node to MASTER_ADDR=" + peer.host);
}

}  // namespace ddprun::trainer

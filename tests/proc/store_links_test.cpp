#include "agent/proc/connections.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/proc/process_facts.hpp"
#include "tests/proc/support.hpp"

using namespace ddprun;

namespace {

/// A TCP socket of loopback, either family.
class LoopbackSocket {
 public:
  explicit LoopbackSocket(int family) : family_(family) {
    fd_ = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  }
  LoopbackSocket(const LoopbackSocket&) = delete;
  LoopbackSocket& operator=(const LoopbackSocket&) = delete;
  ~LoopbackSocket() { ::close(fd_); }

  [[nodiscard]] bool listen() {
    sockaddr_in6 any = address(0);
    return ::bind(fd_, reinterpret_cast<sockaddr*>(&any), length()) == 0 && ::listen(fd_, 8) == 0;
  }
  [[nodiscard]] bool connect(std::uint16_t port) {
    sockaddr_in6 to = address(port);
    return ::connect(fd_, reinterpret_cast<sockaddr*>(&to), length()) == 0;
  }
  [[nodiscard]] std::uint16_t port() const {
    sockaddr_in6 own{};
    socklen_t bytes = sizeof(own);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &bytes);
    return ntohs(own.sin6_port);
  }

 private:
  [[nodiscard]] sockaddr_in6 address(std::uint16_t port) const {
    sockaddr_in6 address{};
    if (family_ == AF_INET6) {
      address.sin6_family = AF_INET6;
      address.sin6_addr = in6addr_loopback;
    } else {
      auto& v4 = reinterpret_cast<sockaddr_in&>(address);
      v4.sin_family = AF_INET;
      v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    address.sin6_port = htons(port);
    return address;
  }
  [[nodiscard]] socklen_t length() const {
    return family_ == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  }

  int family_;
  int fd_;
};

/// A child that only waits, without the descriptors of this process.
class Bystander {
 public:
  Bystander() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::execl("/bin/sleep", "sleep", "60", nullptr);
    ::_exit(127);
  }
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;
  ~Bystander() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

void is_found(int family, const std::string& address) {
  LoopbackSocket store(family);
  if (!store.listen()) return;  // this host has no such family
  LoopbackSocket client(family);
  REQUIRE(client.connect(store.port()));
  const StoreLinks links(store.port());
  const StoreLink own = links.of({::getpid()});
  CHECK(own.known);
  CHECK(own.address == address);
  CHECK(own.ports == std::vector<int>{client.port()});
}

}  // namespace

TEST_CASE("a process that is connected to the store is found with the port of its end") {
  is_found(AF_INET, "127.0.0.1");
  is_found(AF_INET6, "::1");
}

TEST_CASE("a process without a connection to the store is known to have none") {
  LoopbackSocket store(AF_INET);
  REQUIRE(store.listen());
  LoopbackSocket other(AF_INET);
  REQUIRE(other.listen());
  LoopbackSocket client(AF_INET);
  REQUIRE(client.connect(other.port()));
  const StoreLink own = StoreLinks(store.port()).of({::getpid()});
  CHECK(own.known);
  CHECK(own.ports.empty());
}

TEST_CASE("of a rank, any process that descends from its leader may have the connection") {
  LoopbackSocket store(AF_INET);
  REQUIRE(store.listen());
  LoopbackSocket client(AF_INET);
  REQUIRE(client.connect(store.port()));
  const Bystander child;
  const StoreLinks links(store.port());
  const std::vector<pid_t> both = pids_of(processes_below({::getpid()}, kProcessesOfRankMax));
  CHECK(both == std::vector<pid_t>{::getpid(), child.pid()});
  CHECK(links.of(both).ports == std::vector<int>{client.port()});
  // A process that forks all the time is looked at up to a limit.
  CHECK(processes_below({::getpid()}, 1).size() == 1);
}

TEST_CASE("a process that cannot be looked at is neither connected nor absent") {
  const pid_t ended = ::fork();
  if (ended == 0) ::_exit(0);
  ::waitpid(ended, nullptr, 0);
  CHECK_FALSE(StoreLinks(1).of({ended}).known);
}

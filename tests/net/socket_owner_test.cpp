// Whose the client of a loopback connection is, as each of the two sources tells it.
#include "net/local_peer.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cstring>
#include <utility>

#include "net/listen.hpp"
#include "tests/support/catch.hpp"

using ddprun::net::SocketOwners;
using Answer = SocketOwners::Answer;
using Ways = SocketOwners::Ways;

namespace {

sockaddr_in6 v4(const char* address, int port = 0) {
  sockaddr_in6 whole{};
  auto& part = reinterpret_cast<sockaddr_in&>(whole);
  part.sin_family = AF_INET;
  part.sin_port = htons(static_cast<std::uint16_t>(port));
  REQUIRE(::inet_pton(AF_INET, address, &part.sin_addr) == 1);
  return whole;
}

sockaddr_in6 v6(const char* address, int port = 0) {
  sockaddr_in6 whole{};
  whole.sin6_family = AF_INET6;
  whole.sin6_port = htons(static_cast<std::uint16_t>(port));
  REQUIRE(::inet_pton(AF_INET6, address, &whole.sin6_addr) == 1);
  return whole;
}

/// Its port can be bound a second time while it has it, by another such socket.
int shared_socket(int family) {
  const int socket = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  REQUIRE(::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
  return socket;
}

/// Both ends of a connection over loopback: to a socket that listens on `at`.
class Pair {
 public:
  explicit Pair(const std::string& at = "127.0.0.1")
      : listener_(ddprun::net::listen_on(io_.get_executor(), at, 0).value()) {
    listener_.non_blocking(false);
  }
  ~Pair() { close_both(); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  /// False: this machine has no such address.
  bool connect(const sockaddr_in6& address) {
    close_both();
    sockaddr_in6 to = address;
    to.sin6_port = htons(listener_.local_endpoint().port());
    client = shared_socket(to.sin6_family);
    const socklen_t bytes = to.sin6_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    // A port that connect() picks may be another process's, too, to another server.
    sockaddr_in6 any{};
    any.sin6_family = to.sin6_family;
    REQUIRE(::bind(client, reinterpret_cast<const sockaddr*>(&any), bytes) == 0);
    if (::connect(client, reinterpret_cast<const sockaddr*>(&to), bytes) != 0) return false;
    accept();
    return true;
  }
  void accept() {
    socklen_t length = sizeof(from);
    served = ::accept4(listener_.native_handle(), reinterpret_cast<sockaddr*>(&from), &length,
                       SOCK_CLOEXEC);
    REQUIRE(served >= 0);
  }
  void close_client() { ::close(std::exchange(client, -1)); }
  void reset_client() {
    const linger at_once{1, 0};
    ::setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close_client();
  }
  [[nodiscard]] int port() { return listener_.local_endpoint().port(); }

  int client = -1;
  int served = -1;
  sockaddr_in6 from{};

 private:
  void close_both() {
    if (client != -1) ::close(std::exchange(client, -1));
    if (served != -1) ::close(std::exchange(served, -1));
  }

  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor listener_;
};

}  // namespace

TEST_CASE("both sources name the user of a client, over IPv4, IPv6 and mapped addresses") {
  for (const Ways ways : {Ways::kAll, Ways::kTables}) {
    SocketOwners owners(ways);
    const auto is_own = [&](const Pair& pair) {
      const auto owner = owners.of_peer(pair.served, pair.from);
      return owner.answer == Answer::kKnown && owner.uid == ::geteuid();
    };
    Pair plain;
    REQUIRE(plain.connect(v4("127.0.0.1")));
    CHECK(is_own(plain));
    Pair both("");
    REQUIRE(both.connect(v4("127.0.0.1")));
    CHECK(is_own(both));
    if (both.connect(v6("::1"))) {
      CHECK(is_own(both));
      REQUIRE(both.connect(v6("::ffff:127.0.0.1")));
      CHECK(is_own(both));
      REQUIRE(plain.connect(v6("::ffff:127.0.0.1")));
      CHECK(is_own(plain));
    }
  }
}

// A stranger leaves what it has sent, and its port to a process of our user.
TEST_CASE("a connection that was reset is not that of who has its port by now") {
  for (const Ways ways : {Ways::kAll, Ways::kTables}) {
    SocketOwners owners(ways);
    Pair pair;
    REQUIRE(pair.connect(v4("127.0.0.1")));
    // Before the port is free: another process could get it first.
    const int next = shared_socket(AF_INET);
    const sockaddr_in6 to = v4("127.0.0.1", pair.port());
    REQUIRE(::bind(next, reinterpret_cast<const sockaddr*>(&pair.from), sizeof(sockaddr_in)) == 0);
    pair.reset_client();
    REQUIRE(::connect(next, reinterpret_cast<const sockaddr*>(&to), sizeof(sockaddr_in)) == 0);
    CHECK(owners.of_peer(pair.served, pair.from).answer == Answer::kEnded);
    ::close(next);
  }
}

// Kernels before 6.16 give such an end the user id 0, later ones that of its socket.
TEST_CASE("a client that has closed its end is never taken for root") {
  const auto is_root = [](const SocketOwners::Owner& owner) {
    return owner.answer == Answer::kUnknown ||
           (owner.answer == Answer::kKnown && (owner.uid == 0 || owner.uid != ::geteuid()));
  };
  for (const Ways ways : {Ways::kAll, Ways::kTables}) {
    SocketOwners owners(ways);
    Pair pair;
    REQUIRE(pair.connect(v4("127.0.0.1")));
    pair.close_client();
    CHECK_FALSE(is_root(owners.of_peer(pair.served, pair.from)));
    REQUIRE(pair.connect(v4("127.0.0.1")));
    pair.reset_client();
    CHECK_FALSE(is_root(owners.of_peer(pair.served, pair.from)));
    REQUIRE(pair.connect(v4("127.0.0.1")));
    CHECK(owners.of_peer(pair.served, pair.from).answer == Answer::kKnown);
  }
}

TEST_CASE("without either source the user of a client is unknown") {
  SocketOwners owners(Ways::kTables, "/nonexistent");
  Pair pair;
  REQUIRE(pair.connect(v4("127.0.0.1")));
  CHECK(owners.of_peer(pair.served, pair.from).answer == Answer::kUnknown);
}

TEST_CASE("the addresses of this machine are known, and those of others are not") {
  ddprun::net::OwnAddresses own;
  CHECK(own.has(v4("127.0.0.1")));
  CHECK(own.has(v4("127.9.9.9")));
  CHECK(own.has(v6("::1")));
  CHECK(own.has(v6("::ffff:127.0.0.1")));
  CHECK_FALSE(own.has(v4("192.0.2.1")));
  CHECK_FALSE(own.has(v6("2001:db8::1")));
  for (const std::string& address : ddprun::net::outward_addresses()) {
    const bool is_v6 = address.find(':') != std::string::npos;
    CHECK(own.has(is_v6 ? v6(address.c_str()) : v4(address.c_str())));
    CHECK_FALSE(address.starts_with("127."));
    CHECK_FALSE(address.starts_with("fe80:"));
  }
}

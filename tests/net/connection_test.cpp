// Connections of a server: their ids, their addresses as text, and sending from a queue.
#include "net/reactor.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "tests/support/catch.hpp"

using namespace ddprun::net;

namespace {

sockaddr_storage ipv4(const char* address, std::uint16_t port) {
  sockaddr_storage storage{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  ::inet_pton(AF_INET, address, &v4.sin_addr);
  return storage;
}

sockaddr_storage ipv6(const char* address, std::uint16_t port) {
  sockaddr_storage storage{};
  auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  ::inet_pton(AF_INET6, address, &v6.sin6_addr);
  return storage;
}

struct Parts {
  std::string_view unsent;
  std::size_t size;  // of each part

  [[nodiscard]] bool empty() const { return unsent.empty(); }
  [[nodiscard]] std::size_t gather(std::span<iovec> parts) const {
    std::string_view rest = unsent;
    std::size_t count = 0;
    for (; count < parts.size() && !rest.empty(); ++count) {
      const std::string_view part = rest.substr(0, size);
      parts[count] = {const_cast<char*>(part.data()), part.size()};
      rest.remove_prefix(part.size());
    }
    return count;
  }
  void sent(std::size_t bytes) { unsent.remove_prefix(bytes); }
};

std::string read_available(int socket) {
  std::string text(1 << 20, '\0');
  const ssize_t count = ::recv(socket, text.data(), text.size(), MSG_DONTWAIT);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

}  // namespace

TEST_CASE("an id finds its connection until it is erased, and no later one in the same slot") {
  ConnectionTable<Connection> table;
  const auto from = ipv4("127.0.0.1", 1);
  const std::uint64_t first = table.add(-1, from).id;
  const std::uint64_t second = table.add(-1, from).id;
  CHECK(table.size() == 2);
  CHECK(table.find(second)->id == second);
  table.erase(first);
  table.erase(first);
  CHECK(table.find(first) == nullptr);
  CHECK(table.size() == 1);
  const std::uint64_t third = table.add(-1, from).id;
  CHECK(static_cast<std::uint32_t>(third) == static_cast<std::uint32_t>(first));
  CHECK(table.find(first) == nullptr);
  CHECK(table.find(third)->id == third);
  CHECK((0 < first && first < second && second < third));
  std::size_t visited = 0;
  table.for_each([&](const Connection&) { ++visited; });
  CHECK(visited == 2);
  table.clear();
  CHECK(table.find(third) == nullptr);
  CHECK(table.find(~std::uint64_t{0}) == nullptr);
}

TEST_CASE("a peer is shown with its address and port, a mapped IPv4 address as IPv4") {
  CHECK(peer_text(Connection(1, -1, ipv4("10.0.0.7", 40112))) == "10.0.0.7:40112");
  CHECK(peer_text(Connection(1, -1, ipv6("::ffff:10.0.0.7", 40112))) == "10.0.0.7:40112");
  CHECK(peer_text(Connection(1, -1, ipv6("fd00::7", 40112))) == "[fd00::7]:40112");
}

TEST_CASE("a cause is new once for each address, whatever the port") {
  LoggedCauses logged;
  CHECK(logged.is_new(Connection(1, -1, ipv4("10.0.0.7", 1)), "too long"));
  CHECK_FALSE(logged.is_new(Connection(2, -1, ipv4("10.0.0.7", 2)), "too long"));
  CHECK(logged.is_new(Connection(3, -1, ipv4("10.0.0.8", 1)), "too long"));
  CHECK(logged.is_new(Connection(4, -1, ipv4("10.0.0.7", 1)), "too many"));
}

TEST_CASE("a queue is sent in order, in as many parts and calls as the socket needs") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
  std::string bytes(1 << 20, '\0');
  for (std::size_t at = 0; at < bytes.size(); ++at) bytes[at] = static_cast<char>(at * 7 >> 3);
  Parts queue{bytes, 1000};
  CHECK(send_all(ends[0], queue) == Sent::kSome);
  std::string received;
  while (!queue.empty()) {
    received += read_available(ends[1]);
    REQUIRE(send_all(ends[0], queue) != Sent::kBroken);
  }
  received += read_available(ends[1]);
  CHECK(received == bytes);
  CHECK(send_all(ends[0], queue) == Sent::kAll);
  ::close(ends[1]);
  queue.unsent = "x";
  CHECK(send_all(ends[0], queue) == Sent::kBroken);
  ::close(ends[0]);
}

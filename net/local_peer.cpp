#include "net/local_peer.hpp"

#include <ifaddrs.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <utility>

#include "base/address.hpp"
#include "net/reactor.hpp"

namespace ddprun::net {

namespace {

using Words = std::array<std::uint32_t, 4>;  // of an address, in network byte order

// What /proc/net/tcp tells of one connection more is not worth the time.
constexpr int kTableLinesMax = 1 << 20;

constexpr bool is_nobodys(uid_t uid, unsigned long long inode) {
  // What the kernel tells of an end that no process holds: not that it was root's.
  return uid == 0 && inode == 0;
}

/// " 0100007F:A3C2 0100007F:B5D1 ", as the tables of /proc have two ends.
std::string needle(const Words& from, in_port_t from_port, const Words& to, in_port_t to_port,
                   std::size_t words) {
  std::string text = " ";
  std::array<char, 16> part{};
  const auto put = [&](const Words& address, in_port_t port) {
    for (std::size_t at = 0; at < words; ++at) {
      std::snprintf(part.data(), part.size(), "%08X", address[at]);
      text += part.data();
    }
    std::snprintf(part.data(), part.size(), ":%04X ", ntohs(port));
    text += part.data();
  };
  put(from, from_port);
  put(to, to_port);
  return text;
}

bool is_closed(int socket) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  const int failed = ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length);
  return failed != 0 || info.tcpi_state == TCP_CLOSE;
}

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

/// The connection as one of its ends has it.
struct SocketOwners::Ends {
  int family = AF_INET;
  Words own{};
  Words other{};
  in_port_t own_port = 0;
  in_port_t other_port = 0;
  std::uint32_t interface = 0;  // of link-local addresses

  /// An IPv4-mapped address is written as IPv4, by which the kernel finds both kinds of sockets.
  void put(const sockaddr_in6& address, Words& words, in_port_t& port) {
    port = address.sin6_port;  // at the same place in both kinds
    if (address.sin6_family == AF_INET6) interface = std::max(interface, address.sin6_scope_id);
    if (address.sin6_family == AF_INET) {
      words[0] = reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr;
      return;
    }
    std::memcpy(words.data(), &address.sin6_addr, sizeof(words));
    if (!IN6_IS_ADDR_V4MAPPED(&address.sin6_addr)) {
      family = AF_INET6;
    } else {
      words = {words[3]};
    }
  }
  [[nodiscard]] Ends reversed() const {
    return {family, other, own, other_port, own_port, interface};
  }
};

SocketOwners::SocketOwners(Ways ways, std::string tables) : tables_(std::move(tables)) {
  if (ways == Ways::kTables) return;
  kernel_ = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
}

SocketOwners::~SocketOwners() {
  if (kernel_ != -1) ::close(kernel_);
}

SocketOwners::Owner SocketOwners::of_peer(int socket, const sockaddr_in6& peer) {
  sockaddr_in6 local{};
  socklen_t length = sizeof(local);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&local), &length) != 0) return {};
  Ends client;
  client.put(peer, client.own, client.own_port);
  client.put(local, client.other, client.other_port);
  // While our end lives no other client can have its address and port; an end that was reset is
  // still read, and what has its address by now is another connection.
  const auto confirmed = [socket](Owner owner) {
    return is_closed(socket) ? Owner{Answer::kEnded} : owner;
  };
  if (kernel_ != -1) {
    Owner owner;
    const Found found = ask(client, owner);
    if (found == Found::kYes) return confirmed(owner);
    // A kernel that cannot tell says "not found", too. Our end is there, unless it was reset.
    Owner own;
    const bool answers = found == Found::kNo && ask(client.reversed(), own) == Found::kYes;
    if (answers || is_closed(socket)) return {Answer::kEnded};
  }
  return confirmed(look_up(client));
}

// The kernel answers before send() returns.
SocketOwners::Found SocketOwners::ask(const Ends& ends, Owner& owner) {
  struct {
    nlmsghdr header;
    inet_diag_req_v2 request;
  } question{};
  question.header.nlmsg_len = sizeof(question);
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.header.nlmsg_seq = ++asked_;
  inet_diag_req_v2& request = question.request;
  request.sdiag_family = static_cast<std::uint8_t>(ends.family);
  request.sdiag_protocol = IPPROTO_TCP;
  request.idiag_states = ~0U;
  request.id.idiag_sport = ends.own_port;
  request.id.idiag_dport = ends.other_port;
  std::copy(ends.own.begin(), ends.own.end(), request.id.idiag_src);
  std::copy(ends.other.begin(), ends.other.end(), request.id.idiag_dst);
  request.id.idiag_if = ends.interface;
  request.id.idiag_cookie[0] = request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  if (::send(kernel_, &question, sizeof(question), 0) != sizeof(question)) return Found::kFailed;

  alignas(nlmsghdr) std::array<char, 4096> answer;  // NOLINT: recv() fills it
  while (true) {
    const ssize_t received = ::recv(kernel_, answer.data(), answer.size(), 0);
    if (received < static_cast<ssize_t>(NLMSG_HDRLEN)) return Found::kFailed;
    const auto& header = *reinterpret_cast<const nlmsghdr*>(answer.data());
    if (header.nlmsg_seq != asked_) continue;
    if (header.nlmsg_type == NLMSG_ERROR) {
      const auto* error = reinterpret_cast<const nlmsgerr*>(NLMSG_DATA(&header));
      return error->error == -ENOENT ? Found::kNo : Found::kFailed;
    }
    if (header.nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg))) return Found::kFailed;
    const auto* told = reinterpret_cast<const inet_diag_msg*>(NLMSG_DATA(&header));
    // Where no connection is found the kernel looks for a listener on that port.
    if (told->idiag_state == TCP_LISTEN) return Found::kNo;
    // One that only asks for that connection has none.
    const bool asks = told->idiag_state == TCP_SYN_SENT;
    const bool nobodys = asks || is_nobodys(told->idiag_uid, told->idiag_inode);
    owner = {nobodys ? Answer::kEnded : Answer::kKnown, told->idiag_uid};
    return Found::kYes;
  }
}

// `1: 0100007F:A3C2 0100007F:B5D1 01 00000000:00000000 00:00000000 00000000  1000  0 4711 ...`
SocketOwners::Owner SocketOwners::look_up(const Ends& ends) const {
  const bool is_v4 = ends.family == AF_INET;
  const auto mapped = [](const Words& address) { return Words{0, 0, htonl(0xffff), address[0]}; };
  const std::pair<const char*, std::string> searches[] = {
      {"/tcp", needle(ends.own, ends.own_port, ends.other, ends.other_port, 1)},
      {"/tcp6", needle(is_v4 ? mapped(ends.own) : ends.own, ends.own_port,
                       is_v4 ? mapped(ends.other) : ends.other, ends.other_port, 4)}};
  bool any = false;
  for (const auto& [name, wanted] : searches) {
    std::ifstream table(tables_ + name);
    std::string line;
    if (!std::getline(table, line)) continue;  // the heading
    any = true;
    for (int lines = 0; lines < kTableLinesMax && std::getline(table, line); ++lines) {
      const auto at = line.find(wanted);
      if (at == std::string::npos) continue;
      unsigned uid = 0;
      unsigned long long inode = 0;
      const char* rest = line.c_str() + at + wanted.size();
      if (std::sscanf(rest, "%*x %*s %*s %*s %u %*s %llu", &uid, &inode) != 2) continue;
      return {is_nobodys(uid, inode) ? Answer::kEnded : Answer::kKnown, uid};
    }
  }
  return {any ? Answer::kEnded : Answer::kUnknown};
}

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

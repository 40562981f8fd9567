#include "agent/proc/connections.hpp"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "agent/proc/files.hpp"
#include "agent/proc/process_table.hpp"
#include "base/descriptor.hpp"
#include "net/reactor.hpp"

namespace ddprun {
namespace {

// Lines of a table or of the kernel's answer, and descriptors of a rank: what has more is not
// looked at to its end.
constexpr std::size_t kConnectionsMax = 65'536;
constexpr int kDescriptorsMax = 4'096;
constexpr unsigned kEstablished = 1;

/// The inode in the link of a descriptor: "socket:[4711]"; none: it is no socket.
std::optional<std::uint64_t> inode_of(pid_t process, const dirent& descriptor) {
  const std::string link = link_of(process, std::string("fd/") + descriptor.d_name);
  constexpr std::string_view kSocketLink = "socket:[";
  if (!link.starts_with(kSocketLink)) return std::nullopt;
  return std::strtoull(link.c_str() + kSocketLink.size(), nullptr, 10);
}

std::string descriptors_of(pid_t process) {
  return "/proc/" + std::to_string(process) + "/fd";
}

/// "0100007F" or four such words: each in the byte order of the host.
std::string address_in(const std::string& hex) {
  sockaddr_in6 address{};
  const std::size_t words = std::min<std::size_t>(hex.size() / 8, 4);
  std::array<std::uint32_t, 4> raw{};
  for (std::size_t i = 0; i < words; ++i) {
    raw[i] = static_cast<std::uint32_t>(std::strtoul(hex.substr(8 * i, 8).c_str(), nullptr, 16));
  }
  if (words == 4) {
    address.sin6_family = AF_INET6;
    std::copy_n(reinterpret_cast<const unsigned char*>(raw.data()), 16, address.sin6_addr.s6_addr);
  } else {
    auto& v4 = reinterpret_cast<sockaddr_in&>(address);
    v4.sin_family = AF_INET;
    v4.sin_addr.s_addr = raw[0];
  }
  return net::address_text(address);
}

// The head of the kernel's tcp_info, of which the C library's has less.
struct CountedBytes {
  std::array<char, 120> others;
  std::uint64_t acknowledged;
  std::uint64_t received;
};

}  // namespace

StoreLinks::StoreLinks(std::uint16_t port) {
  std::error_code unknown;
  network_ = std::filesystem::read_symlink("/proc/self/ns/net", unknown).string();
  read("/proc/self/net/tcp", port);
  read("/proc/self/net/tcp6", port);
}

// `1: 0100007F:A3C2 0100007F:B5D1 01 ...`; the inode is the tenth word.
void StoreLinks::read(const char* table, std::uint16_t port) {
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);  // the heading
  for (std::size_t lines = 0; std::getline(file, line); ++lines) {
    if (lines == kConnectionsMax) {
      complete_ = false;
      return;
    }
    std::array<char, 33> address{};
    unsigned own_port = 0;
    unsigned remote_port = 0;
    unsigned state = 0;
    unsigned long long inode = 0;
    constexpr const char* kWords =
        " %*[^:]: %32[0-9A-F]:%x %*32[0-9A-F]:%x %x %*s %*s %*s %*s %*s %llu";
    const int found =
        std::sscanf(line.c_str(), kWords, address.data(), &own_port, &remote_port, &state, &inode);
    if (found != 5 || remote_port != port || state != kEstablished || own_port > 65'535) continue;
    ends_[inode] = {address_in(address.data()), static_cast<int>(own_port)};
  }
}

// A process that was forked has the connections of its parent, too.
void StoreLinks::add(const End& end, StoreLink& link) {
  const bool known = std::find(link.ports.begin(), link.ports.end(), end.port) != link.ports.end();
  if (known || link.ports.size() == kStorePortsMax) return;
  link.address = end.address;
  link.ports.push_back(end.port);
}

StoreLink StoreLinks::of(const std::vector<pid_t>& processes) const {
  StoreLink link;
  link.known = complete_ && !network_.empty();
  int descriptors = 0;
  for (const pid_t process : processes) {
    if (!link.ports.empty()) break;  // its data loaders are not looked at
    if (link_of(process, "ns/net") != network_) link.known = false;
    const bool opened = for_each_entry(descriptors_of(process), [&](const dirent& entry) {
      if (++descriptors > kDescriptorsMax) return false;
      const auto inode = inode_of(process, entry);
      const auto found = inode ? ends_.find(*inode) : ends_.end();
      if (found != ends_.end()) add(found->second, link);
      return true;
    });
    if (!opened || descriptors > kDescriptorsMax) link.known = false;
  }
  if (!link.ports.empty()) link.known = true;
  return link;
}

TcpBytes::TcpBytes(std::uint16_t except) {
  const Descriptor kernel(
      ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
  if (kernel.number() < 0 || !ask(kernel.number(), AF_INET, except)) return;
  static_cast<void>(ask(kernel.number(), AF_INET6, except));
}

// The kernel fills each part of the answer when it is asked for: nothing is waited for.
bool TcpBytes::ask(int kernel, int family, std::uint16_t except) {
  struct {
    nlmsghdr header;
    inet_diag_req_v2 request;
  } question{};
  question.header.nlmsg_len = sizeof(question);
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  question.header.nlmsg_seq = static_cast<std::uint32_t>(family);
  question.request.sdiag_family = static_cast<std::uint8_t>(family);
  question.request.sdiag_protocol = IPPROTO_TCP;
  question.request.idiag_ext = 1U << (INET_DIAG_INFO - 1U);
  question.request.idiag_states = 1U << kEstablished;
  if (::send(kernel, &question, sizeof(question), 0) != sizeof(question)) return false;
  alignas(nlmsghdr) std::array<char, 32 * 1024> answer;  // NOLINT: recv() fills it
  while (true) {
    const ssize_t received = ::recv(kernel, answer.data(), answer.size(), 0);
    if (received <= 0) return false;
    auto rest = static_cast<unsigned>(received);
    for (auto* header = reinterpret_cast<const nlmsghdr*>(answer.data()); NLMSG_OK(header, rest);
         header = NLMSG_NEXT(header, rest)) {
      if (header->nlmsg_type == NLMSG_DONE) return true;
      if (header->nlmsg_type == NLMSG_ERROR) return false;
      take(NLMSG_DATA(header), header->nlmsg_len - NLMSG_HDRLEN, except);
    }
  }
}

// inet_diag_msg and attributes; a kernel before 4.2 counts no bytes.
void TcpBytes::take(const void* message, std::size_t bytes, std::uint16_t except) {
  const auto* told = static_cast<const inet_diag_msg*>(message);
  if (bytes < sizeof(*told) || bytes_.size() >= kConnectionsMax) return;
  if (ntohs(told->id.idiag_dport) == except || told->idiag_inode == 0) return;
  const auto* attribute = reinterpret_cast<const rtattr*>(told + 1);
  auto rest = static_cast<unsigned>(bytes - sizeof(*told));
  for (; RTA_OK(attribute, rest); attribute = RTA_NEXT(attribute, rest)) {
    if (attribute->rta_type != INET_DIAG_INFO) continue;
    CountedBytes counted{};
    std::memcpy(&counted, RTA_DATA(attribute),
                std::min<std::size_t>(RTA_PAYLOAD(attribute), sizeof(counted)));
    bytes_[told->idiag_inode] = counted.received + counted.acknowledged;
  }
}

std::uint64_t TcpBytes::of(pid_t process) const {
  std::uint64_t sum = 0;
  if (bytes_.empty()) return sum;
  for_each_entry(descriptors_of(process), [&](const dirent& entry) {
    const auto inode = inode_of(process, entry);
    const auto found = inode ? bytes_.find(*inode) : bytes_.end();
    if (found != bytes_.end()) sum += found->second;
    return true;
  });
  return sum;
}

}  // namespace ddprun

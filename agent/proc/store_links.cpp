#include "agent/proc/store_links.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "net/connection.hpp"

namespace ddprun {
namespace {

// Lines of a table, and descriptors of a rank: what has more is not looked at to its end.
constexpr int kConnectionsMax = 65'536;
constexpr int kDescriptorsMax = 4'096;
constexpr unsigned kEstablished = 1;

std::string link_at(const std::string& path) {
  std::array<char, 64> target{};
  const ssize_t bytes = ::readlink(path.c_str(), target.data(), target.size());
  return {target.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
}

std::string folder_of(pid_t process) {
  return "/proc/" + std::to_string(process);
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

}  // namespace

StoreLinks::StoreLinks(std::uint16_t port) : network_(link_at("/proc/self/ns/net")) {
  read("/proc/self/net/tcp", port);
  read("/proc/self/net/tcp6", port);
}

// `1: 0100007F:A3C2 0100007F:B5D1 01 ...`; the inode is the tenth word.
void StoreLinks::read(const char* table, std::uint16_t port) {
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);  // the heading
  for (int lines = 0; std::getline(file, line); ++lines) {
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
    ends_["socket:[" + std::to_string(inode) + "]"] = {address_in(address.data()),
                                                       static_cast<int>(own_port)};
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
    const std::string folder = folder_of(process);
    if (link_at(folder + "/ns/net") != network_) link.known = false;
    std::error_code why;
    std::filesystem::directory_iterator entry(folder + "/fd", why);
    for (const std::filesystem::directory_iterator end; !why && entry != end;
         entry.increment(why)) {
      if (++descriptors > kDescriptorsMax) break;
      const auto found = ends_.find(link_at(entry->path().string()));
      if (found != ends_.end()) add(found->second, link);
    }
    if (why || descriptors > kDescriptorsMax) link.known = false;
  }
  if (!link.ports.empty()) link.known = true;
  return link;
}

}  // namespace ddprun

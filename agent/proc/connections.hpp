// The TCP connections of processes. A picture of one moment, read once for all ranks. Thread rule:
// none.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/rank_facts.hpp"

namespace ddprun {

/// Which processes are connected to the store of a round, from /proc/net/tcp and the descriptors of
/// each.
class StoreLinks {
 public:
  /// Reads the connections of this network namespace to `port`, on whatever host.
  explicit StoreLinks(std::uint16_t port);
  /// Of the processes of one rank. Unknown where one of them may not be looked at, or has another
  /// network namespace.
  [[nodiscard]] StoreLink of(const std::vector<pid_t>& processes) const;

 private:
  struct End {
    std::string address;
    int port = 0;
  };
  static void add(const End& end, StoreLink& link);
  void read(const char* table, std::uint16_t port);

  bool complete_ = true;
  std::string network_;                          // namespace of this process
  std::unordered_map<std::uint64_t, End> ends_;  // by inode
};

/// How many bytes connections have moved, as the kernel's sock_diag counts them: recv() and send()
/// are in no counter of /proc. Empty where the kernel does not tell.
class TcpBytes {
 public:
  /// Reads the connections of this network namespace, but for those to `except`, the port of a
  /// store: clients ask it again and again while they wait.
  explicit TcpBytes(std::uint16_t except);
  /// Received, and sent and acknowledged, by what the process holds.
  [[nodiscard]] std::uint64_t of(pid_t process) const;

 private:
  bool ask(int kernel, int family, std::uint16_t except);
  void take(const void* message, std::size_t bytes, std::uint16_t except);

  std::unordered_map<std::uint64_t, std::uint64_t> bytes_;  // by inode
};

}  // namespace ddprun

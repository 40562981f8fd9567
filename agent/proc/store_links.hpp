// StoreLinks: which processes are connected to the store of a round, from /proc/net/tcp and the
// descriptors of each. A picture of one moment, read once for all ranks. Thread rule: none.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/rank_facts.hpp"

namespace ddprun {

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
  std::string network_;                        // namespace of this process
  std::unordered_map<std::string, End> ends_;  // by "socket:[4711]", as /proc/PID/fd has it
};

}  // namespace ddprun

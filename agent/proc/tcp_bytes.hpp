// TcpBytes: how many bytes the TCP connections of processes have moved, as the kernel's sock_diag
// counts them: recv() and send() are in no counter of /proc. A picture of one moment, read once for
// all ranks. Empty where the kernel does not tell. Thread rule: none.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <unordered_map>

namespace ddprun {

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

// Peers within this machine: the addresses of its interfaces, as literals without a zone, which may
// change while a process runs; and which user the client of a connection is. Thread rule: one
// thread.
#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <string>
#include <unordered_set>
#include <vector>

#include "base/clock.hpp"

namespace ddprun::net {

/// The user of a client, as SO_PEERCRED tells for Unix sockets. The kernel is asked for the
/// client's end (NETLINK_SOCK_DIAG, one exchange of about 3 µs, nothing is waited for); where it
/// does not answer, /proc/net/tcp and tcp6 are read. Owns a descriptor.
class SocketOwners {
 public:
  enum class Answer {
    kKnown,
    kEnded,    // the client has closed its end: nothing tells any more whose it was
    kUnknown,  // this system does not tell
  };
  struct Owner {
    Answer answer = Answer::kUnknown;
    uid_t uid = 0;  // with kKnown; users outside this user namespace have the overflow id, 65534
  };
  enum class Ways { kAll, kTables };

  /// `tables`: the folder that has tcp and tcp6.
  explicit SocketOwners(Ways ways = Ways::kAll, std::string tables = "/proc/self/net");
  ~SocketOwners();
  SocketOwners(const SocketOwners&) = delete;
  SocketOwners& operator=(const SocketOwners&) = delete;

  /// `socket`: accepted, from `peer`, which is an address of this machine.
  [[nodiscard]] Owner of_peer(int socket, const sockaddr_in6& peer);

 private:
  struct Ends;
  enum class Found { kYes, kNo, kFailed };

  [[nodiscard]] Found ask(const Ends& ends, Owner& owner);
  [[nodiscard]] Owner look_up(const Ends& ends) const;

  int kernel_ = -1;  // -1: it does not answer
  unsigned asked_ = 0;
  std::string tables_;
};

/// Those from which other machines may see this one come: without loopback, and without link-local
/// ones of IPv6, of which every virtual interface has one. Empty if the system does not tell.
[[nodiscard]] std::vector<std::string> outward_addresses();

class OwnAddresses {
 public:
  /// Whether a connection from `peer` begins on this machine. Reads the interfaces again for an
  /// unknown address, at most once in a second.
  [[nodiscard]] bool has(const sockaddr_in6& peer);

 private:
  std::unordered_set<std::string> known_;
  TimePoint read_{};
};

}  // namespace ddprun::net

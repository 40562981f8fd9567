// SocketOwners: which user the client of a connection within this machine is, as SO_PEERCRED tells
// for Unix sockets. The kernel is asked for the client's end (NETLINK_SOCK_DIAG, one exchange of
// about 3 µs, nothing is waited for); where it does not answer, /proc/net/tcp and tcp6 are read.
// Thread rule: one thread. Ownership: a descriptor.
#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <string>

namespace ddprun::net {

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

}  // namespace ddprun::net

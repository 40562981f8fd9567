// Connection: an accepted socket of a server, and ConnectionTable, which finds it by the id that
// the events of a Reactor carry. Thread rule: one thread. A Connection owns its socket.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace ddprun::net {

struct Connection {
  Connection(std::uint64_t number, int socket, const sockaddr_storage& peer);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  std::uint64_t id;
  int fd;
  std::uint32_t interest = 0;  // events that the reactor reports; 0: it does not watch this socket
  sockaddr_in6 from{};         // holds a sockaddr_in for IPv4
};

/// Numeric, without port; an IPv4-mapped IPv6 address is written as IPv4.
[[nodiscard]] std::string address_text(const sockaddr_in6& address);
/// "10.0.0.7:40112", "[fd00::7]:40112".
[[nodiscard]] std::string peer_text(const Connection& connection);

/// Which causes were logged for which address, so that one peer cannot fill the log.
class LoggedCauses {
 public:
  /// Whether this is new; remembers it. Memory is bounded: after many causes it begins again.
  [[nodiscard]] bool is_new(const Connection& connection, const std::string& cause);

 private:
  std::unordered_set<std::string> logged_;
};

/// Entry: derives from Connection. Pointers stay valid until erase().
template <class Entry>
class ConnectionTable {
 public:
  template <class... Arguments>
  Entry& add(int socket, const sockaddr_storage& from, Arguments&&... more) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(entries_.size()));
      entries_.emplace_back();
    }
    const std::uint32_t slot = free_.back();
    const std::uint64_t id = std::uint64_t{++added_} << 32 | slot;  // grows, and is never reused
    entries_[slot] = std::make_unique<Entry>(id, socket, from, std::forward<Arguments>(more)...);
    free_.pop_back();
    ++size_;
    return *entries_[slot];
  }
  /// Null if it was erased.
  [[nodiscard]] Entry* find(std::uint64_t id) const {
    const auto slot = static_cast<std::uint32_t>(id);
    if (slot >= entries_.size() || entries_[slot] == nullptr) return nullptr;
    return entries_[slot]->id == id ? entries_[slot].get() : nullptr;
  }
  void erase(std::uint64_t id) {
    if (find(id) == nullptr) return;
    const auto slot = static_cast<std::uint32_t>(id);
    entries_[slot].reset();
    free_.push_back(slot);
    --size_;
  }
  void clear() {
    entries_.clear();
    free_.clear();
    size_ = 0;
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& entry : entries_) {
      if (entry != nullptr) visit(*entry);
    }
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::vector<std::unique_ptr<Entry>> entries_;  // indexed by the low half of the id
  std::vector<std::uint32_t> free_;
  std::size_t size_ = 0;
  std::uint32_t added_ = 0;
};

enum class Sent { kAll, kSome, kBroken };

/// Sends from a queue with empty(), gather() and sent() as much as the socket accepts.
template <class Queue>
Sent send_all(int socket, Queue& queue) {
  while (!queue.empty()) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): gather() fills it
    std::array<iovec, 64> parts;
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = queue.gather(parts);
    const ssize_t count = message.msg_iovlen == 1  // the common case, and cheaper than sendmsg
                              ? ::send(socket, parts[0].iov_base, parts[0].iov_len, MSG_NOSIGNAL)
                              : ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN ? Sent::kSome : Sent::kBroken;
    queue.sent(static_cast<std::size_t>(count));
  }
  return Sent::kAll;
}

}  // namespace ddprun::net

// Connections that have just come: their protocol, from their first bytes, and Unproven, those
// whose peers have not proved who they are. Pure, single owner.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/clock.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace ddprun::coordinator {

enum class Speaks {
  kUnknownYet,  // the bytes so far match several protocols
  kAgent,
  kHttp,
  kTls,    // an agent with a secret or a certificate
  kStore,  // anything else: the store refuses non-c10d bytes
};

// No request of the store's protocol starts with a letter.
inline constexpr std::array<std::pair<std::string_view, Speaks>, 9> kFirstBytes{{
    {{protocol::kMagic, sizeof(protocol::kMagic)}, Speaks::kAgent},
    {"\x16", Speaks::kTls},  // a record of a handshake; no opcode of the store
    {"GET ", Speaks::kHttp},
    {"HEAD", Speaks::kHttp},
    {"POST", Speaks::kHttp},
    {"PUT ", Speaks::kHttp},
    {"DELE", Speaks::kHttp},
    {"PATC", Speaks::kHttp},
    {"OPTI", Speaks::kHttp},
}};

[[nodiscard]] constexpr Speaks protocol_of(std::string_view first) {
  if (first.empty()) return Speaks::kUnknownYet;
  for (const auto& [bytes, speaks] : kFirstBytes) {
    if (first.starts_with(bytes)) return speaks;
    if (bytes.starts_with(first)) return Speaks::kUnknownYet;
  }
  return Speaks::kStore;
}

/// Handshakes get one part of so many of the time at most.
inline constexpr int kUnprovenShare = 2;

/// Connections in a handshake. Together they get a share of the time, one network after the other,
/// and where there are too many the network with the most loses its oldest: who comes from one
/// place delays and crowds out itself.
class Unproven {
 public:
  /// `network`: of its address, as network_of() names it.
  void add(std::uint64_t id, const std::string& network);
  /// It has proved who it is, or is closed.
  void remove(std::uint64_t id);
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  /// The oldest of the network that has most; only if there is one.
  [[nodiscard]] std::uint64_t loser() const;

  /// It has sent something, which costs time.
  void want_turn(std::uint64_t id);
  /// Whose turn it is; none: no connection waits, or their share is used up.
  [[nodiscard]] std::optional<std::uint64_t> next_turn(TimePoint now);
  /// What the turn has cost.
  void spent(Duration cost, TimePoint now) { free_at_ = now + (kUnprovenShare - 1) * cost; }
  /// When the next turn may be taken; none: no connection waits.
  [[nodiscard]] std::optional<TimePoint> next_at() const;
  [[nodiscard]] std::size_t waiting() const { return waiting_; }

 private:
  struct Network {
    std::list<std::uint64_t> all;       // oldest first
    std::deque<std::uint64_t> waiting;  // those that want a turn; some may be gone
  };
  struct One {
    std::string network;
    std::list<std::uint64_t>::iterator place;
    bool waits = false;
  };
  std::map<std::string, Network> networks_;
  std::unordered_map<std::uint64_t, One> all_;
  std::string last_;  // the network that had a turn last
  std::size_t waiting_ = 0;
  TimePoint free_at_{};
};

}  // namespace ddprun::coordinator

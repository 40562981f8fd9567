// Peers: who may use a store, decided once for each accepted connection. c10d has no
// authentication, so the address of the client decides, and on this machine its user. Thread rule:
// one thread. Ownership: may be shared by the stores of several rounds.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/clock.hpp"
#include "net/local_peer.hpp"
#include "net/reactor.hpp"
#include "rendezvous/store/refusal.hpp"

namespace spdlog {
class logger;
}

namespace ddprun::store {

/// Addresses that are remembered; more are not added.
inline constexpr std::size_t kPeerAddressesMax = 262'144;

class Peers {
 public:
  enum class Verdict { kWelcome, kRefused, kEnded };
  struct Options {
    /// Whether a process that belongs to the owner of the store runs as this user; asked at most
    /// once in a second for each, and never for the own user and root. Empty: none does.
    std::function<bool(uid_t)> runs_as = {};
    /// For what the user has to know; null: no log.
    std::shared_ptr<spdlog::logger> log = nullptr;
    net::SocketOwners::Ways ways = net::SocketOwners::Ways::kAll;
    std::string tables = "/proc/self/net";  // see SocketOwners
  };

  /// Admits processes of this machine that run as the user of this process, as root or as
  /// Options::runs_as says, and no other machine.
  explicit Peers(Options options);

  /// Connections from these address literals are admitted, too.
  void add(const std::vector<std::string>& addresses);
  /// From now on connections from every other machine are admitted.
  void admit_every_address() { every_address_ = true; }

  [[nodiscard]] Verdict check(const net::Connection& connection);
  /// After Verdict::kRefused.
  [[nodiscard]] const Refusal& refusal() const { return refusal_; }

 private:
  [[nodiscard]] Verdict check_user(const net::Connection& connection);
  [[nodiscard]] bool may_run_as(uid_t uid);

  Options options_;
  net::SocketOwners owners_;
  net::OwnAddresses own_;
  std::unordered_set<std::string> addresses_;
  bool every_address_ = false;
  bool warned_ = false;
  uid_t own_uid_;
  std::map<uid_t, std::pair<bool, TimePoint>> asked_;  // of Options::runs_as
  Refusal refusal_{Reason::kStranger};
};

}  // namespace ddprun::store

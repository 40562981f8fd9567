// RendezvousConfig: how this node finds the other nodes of its run. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/certificates.hpp"
#include "base/clock.hpp"
#include "base/secret.hpp"

namespace ddprun {

/// Where the coordinator is: a name, resolved at every attempt, or an address literal without
/// brackets.
struct CoordinatorAddress {
  std::string host;
  std::uint16_t port = 0;
};

/// What chooses MASTER_ADDR and MASTER_PORT of a round.
enum class MasterChoice : std::uint8_t {
  kRound,  // c10d: a fresh store of the node with rank 0, on its address and a port of its own
  kFixed,  // static: those of StoreConfig, in every round; node rank 0 serves
};

/// --rdzv-backend=etcd-v3: the coordinator is elected there.
struct EtcdConfig {
  std::vector<CoordinatorAddress> endpoints;  // at least one
  std::string prefix = "/ddprun";             // of the keys
  std::string user;                           // empty: none
  std::string password_file;                  // empty: none
  std::string password{};                     // read from it at the start
  std::optional<Certificates> tls{};          // HTTPS; no paths: the system's CAs; unset: HTTP
  bool may_lead = true;                       // this node may run the coordinator
  std::string text;                           // "etcd h1:2379,h2:2379", for sentences
};

struct RendezvousConfig {
  CoordinatorAddress coordinator;
  MasterChoice master = MasterChoice::kRound;
  int nodes_min = 1;
  int nodes_max = 1;
  std::string address;           // --local-addr, a literal; empty: the link's source address
  std::optional<int> node_rank;  // --node-rank; with static always
  std::optional<int>
      scheduler_index;        // this node's position in the scheduler's list, or in --hosts
  SharedSecret secret;        // of the run; null: none
  std::string secret_from{};  // who says so, for people; empty: there is none
  std::optional<Certificates> certificates{};  // in place of a secret; neither: clear text
  // The endpoint's host as given, if this node goes to its own coordinator by loopback, else empty:
  // a certificate names it, and other nodes should reach this node there.
  std::string given_host{};
  // Addresses of the endpoint's name that this node, which may coordinate, lacks: other nodes that
  // have one may coordinate, too.
  std::vector<std::string> namesakes{};
  std::optional<EtcdConfig> etcd{};  // it says where the coordinator is
  // Of a list of hosts: where each would coordinate the run; the first is `coordinator`'s. Else
  // none.
  std::vector<CoordinatorAddress> hosts{};
  // Tells runs of other lists apart: host:port of the first, as it is given. Empty for the list of
  // a scheduler, which may name a host differently on each node, and whose job has an id.
  std::string list_begins{};
  /// Its id was given, or is that of a job, and so tells it from other runs at the endpoint.
  bool run_is_named = false;
  bool fails_over = false;  // other nodes may coordinate the run after this coordinator
  bool stands_by = false;   // this one may
  // --rdzv-conf
  Duration join_timeout = std::chrono::seconds(600);
  Duration last_call_timeout = std::chrono::seconds(30);
  Duration keep_alive_interval = std::chrono::seconds(1);
  int keep_alive_max_attempt = 5;
  Duration coordinator_timeout = std::chrono::seconds(60);

  /// Of this node in `hosts`; none for the first, whose entry is the endpoint.
  [[nodiscard]] std::optional<CoordinatorAddress> own_entry() const {
    const auto own = static_cast<std::size_t>(node_rank.value_or(0));
    if (own == 0 || own >= hosts.size()) return std::nullopt;
    return hosts[own];
  }
};

}  // namespace ddprun

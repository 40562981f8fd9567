#include "rendezvous/store/server_peers.hpp"

#include <spdlog/logger.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "base/address.hpp"

namespace ddprun::store {

namespace {

constexpr std::chrono::seconds kAskAgain{1};
constexpr std::size_t kAskedMax = 1024;

}  // namespace

Peers::Peers(Options options)
    : options_(std::move(options)),
      owners_(options_.ways, options_.tables),
      own_uid_(::geteuid()) {}

void Peers::add(const std::vector<std::string>& addresses) {
  for (const std::string& address : addresses) {
    if (addresses_.size() >= kPeerAddressesMax) return;
    const std::string plain = plain_literal(address);
    if (!plain.empty()) addresses_.insert(plain);
  }
}

Peers::Verdict Peers::check(const net::Connection& connection) {
  if (own_.has(connection.from)) return check_user(connection);
  if (every_address_ || addresses_.contains(net::address_text(connection.from))) {
    return Verdict::kWelcome;
  }
  refusal_ = Refusal(Reason::kStranger);
  return Verdict::kRefused;
}

Peers::Verdict Peers::check_user(const net::Connection& connection) {
  using Answer = net::SocketOwners::Answer;
  const auto owner = owners_.of_peer(connection.fd, connection.from);
  if (owner.answer == Answer::kEnded) return Verdict::kEnded;
  if (owner.answer == Answer::kKnown) {
    if (may_run_as(owner.uid)) return Verdict::kWelcome;
    refusal_ = Refusal(Reason::kOtherUser, owner.uid);
    return Verdict::kRefused;
  }
  if (options_.log && !std::exchange(warned_, true)) {
    options_.log->warn(
        "every user of this machine can use the store: this system tells neither by "
        "NETLINK_SOCK_DIAG nor in /proc/net/tcp whose a connection is");
  }
  return Verdict::kWelcome;
}

bool Peers::may_run_as(uid_t uid) {
  if (uid == own_uid_ || uid == 0) return true;
  if (!options_.runs_as) return false;
  const TimePoint now = Clock::now();
  const auto known = asked_.find(uid);
  if (known != asked_.end()) {
    const auto& [runs, asked_at] = known->second;
    if (runs || now - asked_at < kAskAgain) return runs;
  }
  if (asked_.size() >= kAskedMax) asked_.clear();
  const bool runs = options_.runs_as(uid);
  asked_[uid] = {runs, now};
  return runs;
}

}  // namespace ddprun::store

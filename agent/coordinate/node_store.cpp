#include "agent/coordinate/node_store.hpp"

#include <boost/asio/post.hpp>
#include <utility>

#include "agent/coordinate/store_peers.hpp"
#include "base/assert.hpp"

namespace ddprun {

NodeStore::NodeStore(boost::asio::any_io_executor executor, const LaunchConfig& config,
                     coordinator::Server* local_coordinator, std::shared_ptr<spdlog::logger> log)
    : executor_(std::move(executor)),
      config_(config),
      local_coordinator_(local_coordinator),
      log_(std::move(log)) {}

bool NodeStore::fixed() const {
  return config_.rendezvous && config_.rendezvous->master == MasterChoice::kFixed;
}

Result<std::uint16_t> NodeStore::open_next() {
  if (fixed()) return config_.store.master_port;
  if (own_port() != 0 && std::exchange(listened_, true)) return own_port();
  auto store = RoundStore::listen(executor_, config_, own_port(), log_);
  if (!store) return store.error();
  next_.emplace(std::move(*store));
  return next_->port();
}

std::shared_ptr<store::Peers> NodeStore::peers_of(const std::vector<std::string>& nodes) const {
  auto peers = make_store_peers(config_, log_);
  if (!peers || !config_.rendezvous) return peers;
  peers->add(nodes);
  if (nodes.empty()) peers->admit_every_address();
  return peers;
}

Result<void> NodeStore::serve(Round round, const std::vector<std::string>& nodes) {
  if (fixed()) {
    used_ = true;
    if (local_coordinator_ != nullptr) local_coordinator_->on_rank_claims(seen_in(round));
    return {};
  }
  if (!next_ && own_port() != 0) {
    opens_late_ = round;
    return {};
  }
  DDPRUN_ASSERT(next_.has_value());
  RoundStore& store = served_.emplace(round, std::move(*next_)).first->second;
  next_.reset();
  return store.serve(peers_of(nodes), seen_in(round));
}

Result<void> NodeStore::begin() {
  if (!opens_late_) return {};
  // Their port is needed. close() removes them, once release() has called back.
  for (auto& [round, store] : served_) store.close();
  auto store = RoundStore::listen(executor_, config_, own_port(), log_);
  if (!store) return store.error();
  const Round round = *std::exchange(opens_late_, std::nullopt);
  return served_.emplace(round, std::move(*store))
      .first->second.serve(peers_of({}), seen_in(round));
}

std::string NodeStore::served_at() const {
  return served_.empty() ? "" : served_.rbegin()->second.served_at();
}

store::Counters NodeStore::counters() const {
  store::Counters all;
  all.refused = refused_before_;
  for (const auto& [round, store] : served_) {
    const store::Counters one = store.counters();
    all.connections += one.connections;
    all.keys += one.keys;
    all.refused += one.refused;
  }
  return all;
}

std::vector<StoreWait> NodeStore::waits(Round round) const {
  if (fixed()) {
    return local_coordinator_ == nullptr ? std::vector<StoreWait>()
                                         : local_coordinator_->store_waits();
  }
  const auto found = served_.find(round);
  return found == served_.end() ? std::vector<StoreWait>() : found->second.waits();
}

// --master-port of a single node: the rounds listen there, one after another.
std::uint16_t NodeStore::own_port() const {
  return config_.rendezvous ? 0 : config_.store.master_port;
}

std::function<void(const RankClaims&)> NodeStore::seen_in(Round round) const {
  return [seen = seen_, round](const RankClaims& claims) {
    if (seen) seen(round, claims);
  };
}

void NodeStore::release(Round round, std::function<void()> idle) {
  const auto found = served_.find(round);
  if (found != served_.end() && found->second.when_idle(idle)) return;
  // Only what a round has used: a worker of another node may be faster than this node's agent, and
  // must not be left in the store of an ended round.
  if (std::exchange(used_, false) && local_coordinator_ != nullptr) {
    return local_coordinator_->begin_fresh_store(round, std::move(idle));
  }
  boost::asio::post(executor_, std::move(idle));  // rank 0 serves itself
}

void NodeStore::close(Round round) {
  if (const auto found = served_.find(round); found != served_.end()) {
    refused_before_ += found->second.counters().refused;
    served_.erase(found);
  }
  if (fixed() && local_coordinator_ != nullptr) local_coordinator_->close_store(round);
}

}  // namespace ddprun

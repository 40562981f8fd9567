#include "agent/coordinate/node_store.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "agent/proc/process_table.hpp"
#include "base/assert.hpp"
#include "base/process_setup.hpp"
#include "net/listen.hpp"

namespace ddprun {

namespace {

// The event loop, consoles, signals, lookups in /proc, the report.
constexpr std::size_t kDescriptorsOfAgent = 64;
// Pipes, logs and the pidfd, and as much again for those that a restart replaces.
constexpr std::size_t kDescriptorsPerWorker = 16;

}  // namespace

std::size_t connections_max(const LaunchConfig& config) {
  const auto workers = static_cast<std::size_t>(config.workers.count);
  const std::size_t free =
      descriptors_for_clients(kDescriptorsOfAgent + kDescriptorsPerWorker * workers);
  // A node that runs the coordinator may serve a round, too.
  const bool two = config.rendezvous && config.rendezvous->master != MasterChoice::kFixed;
  return std::min(store::Limits{}.connections, two ? free / 2 : free);
}

std::shared_ptr<store::Peers> make_store_peers(const LaunchConfig& config,
                                               std::shared_ptr<spdlog::logger> log) {
  if (config.store.open) return nullptr;
  store::Peers::Options options;
  options.runs_as = &any_process_below_runs_as;
  options.log = std::move(log);
  return std::make_shared<store::Peers>(std::move(options));
}

// With a fixed address the coordinator stays: no other node follows it.
NodeStore::NodeStore(boost::asio::any_io_executor executor, const LaunchConfig& config,
                     coordinator::Server* local_coordinator, std::shared_ptr<spdlog::logger> log)
    : executor_(std::move(executor)),
      config_(config),
      fixed_store_(fixed() ? local_coordinator : nullptr),
      log_(std::move(log)) {}

bool NodeStore::fixed() const {
  return config_.rendezvous && config_.rendezvous->master == MasterChoice::kFixed;
}

// --master-port of a single node: the rounds listen there, one after another.
std::uint16_t NodeStore::own_port() const {
  return config_.rendezvous ? 0 : config_.store.master_port;
}

Result<std::uint16_t> NodeStore::open_next() {
  if (fixed()) return config_.store.master_port;
  if (own_port() != 0 && std::exchange(listened_, true)) return own_port();
  auto listener = net::listen_on(executor_, config_.store.listen_addr, own_port());
  if (!listener) return listener.error();
  next_.emplace(std::move(*listener));
  return next_->local_endpoint().port();
}

Result<void> NodeStore::serve(Round round, const std::vector<std::string>& nodes) {
  if (fixed()) {
    used_ = true;
    if (fixed_store_ != nullptr) fixed_store_->on_rank_claims(seen_in(round));
    return {};
  }
  if (!next_ && own_port() != 0) {
    opens_late_ = round;
    return {};
  }
  DDPRUN_ASSERT(next_.has_value());
  Listener listener = std::move(*next_);
  next_.reset();
  return start(round, std::move(listener), nodes);
}

Result<void> NodeStore::begin() {
  if (!opens_late_) return {};
  // Their port is needed. close() removes them, once release() has called back.
  for (const auto& [round, server] : served_) {
    if (server) server->close();
  }
  auto listener = net::listen_on(executor_, config_.store.listen_addr, own_port());
  if (!listener) return listener.error();
  return start(*std::exchange(opens_late_, std::nullopt), std::move(*listener), {});
}

Result<void> NodeStore::start(Round round, Listener listener,
                              const std::vector<std::string>& nodes) {
  std::unique_ptr<store::Server>& server = served_[round];
  if (config_.store.host == StoreHost::kWorkerZero) {
    // Rank 0 will listen here itself; no other process is likely to get this port in between.
    boost::system::error_code ignored;
    listener.close(ignored);
    return {};
  }
  store::ServerOptions options;
  options.limits.connections = connections_max(config_);
  options.log = log_;
  options.peers = peers_of(nodes);
  server = std::make_unique<store::Server>(executor_, std::move(listener), std::move(options));
  server->on_rank_claims(seen_in(round));
  return server->start();
}

std::shared_ptr<store::Peers> NodeStore::peers_of(const std::vector<std::string>& nodes) const {
  auto peers = make_store_peers(config_, log_);
  if (!peers || !config_.rendezvous) return peers;
  peers->add(nodes);
  if (nodes.empty()) peers->admit_every_address();
  return peers;
}

std::function<void(const RankClaims&)> NodeStore::seen_in(Round round) const {
  return [seen = seen_, round](const RankClaims& claims) {
    if (seen) seen(round, claims);
  };
}

std::string NodeStore::served_at() const {
  const bool serves = !served_.empty() && served_.rbegin()->second != nullptr;
  return serves ? net::to_text(served_.rbegin()->second->endpoint()) : "";
}

store::Counters NodeStore::counters() const {
  store::Counters all;
  all.refused = refused_before_;
  for (const auto& [round, server] : served_) {
    if (!server) continue;
    const store::Counters one = server->counters();
    all.connections += one.connections;
    all.keys += one.keys;
    all.refused += one.refused;
  }
  return all;
}

std::vector<StoreWait> NodeStore::waits(Round round) const {
  if (fixed_store_ != nullptr) return fixed_store_->store_waits();
  const auto found = served_.find(round);
  const bool serves = found != served_.end() && found->second;
  return serves ? found->second->waits() : std::vector<StoreWait>();
}

void NodeStore::release(Round round, std::function<void()> idle) {
  const auto found = served_.find(round);
  if (found != served_.end() && found->second) return found->second->when_idle(std::move(idle));
  // Only what a round has used: a worker of another node may be faster than this node's agent, and
  // must not be left in the store of an ended round.
  if (std::exchange(used_, false) && fixed_store_ != nullptr) {
    return fixed_store_->begin_fresh_store(round, std::move(idle));
  }
  boost::asio::post(executor_, std::move(idle));  // rank 0 serves itself
}

void NodeStore::close(Round round) {
  if (const auto found = served_.find(round); found != served_.end()) {
    if (found->second) refused_before_ += found->second->counters().refused;
    served_.erase(found);
  }
  if (fixed_store_ != nullptr) fixed_store_->close_store(round);
}

}  // namespace ddprun

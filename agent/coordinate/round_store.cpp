#include "agent/coordinate/round_store.hpp"

#include <algorithm>
#include <utility>

#include "base/process_setup.hpp"
#include "net/listen.hpp"

namespace ddprun {

namespace asio = boost::asio;

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

RoundStore::RoundStore(asio::ip::tcp::acceptor listener, const LaunchConfig& config,
                       std::shared_ptr<spdlog::logger> log)
    : listener_(std::move(listener)),
      host_(config.store.host),
      connections_max_(connections_max(config)),
      log_(std::move(log)),
      port_(listener_.local_endpoint().port()) {}

Result<RoundStore> RoundStore::listen(asio::any_io_executor executor, const LaunchConfig& config,
                                      std::uint16_t port, std::shared_ptr<spdlog::logger> log) {
  auto listener = net::listen_on(executor, config.store.listen_addr, port);
  if (!listener) return listener.error();
  return RoundStore(std::move(*listener), config, std::move(log));
}

Result<void> RoundStore::serve(std::shared_ptr<store::Peers> peers,
                               std::function<void(const RankClaims&)> seen) {
  if (host_ == StoreHost::kWorkerZero) {
    // Rank 0 will listen here itself; no other process is likely to get this port in between.
    boost::system::error_code ignored;
    listener_.close(ignored);
    return {};
  }
  served_at_ = net::to_text(listener_.local_endpoint());
  store::ServerOptions options;
  options.limits.connections = connections_max_;
  options.log = std::move(log_);
  options.peers = std::move(peers);
  server_ = std::make_unique<store::Server>(listener_.get_executor(), std::move(listener_),
                                            std::move(options));
  server_->on_rank_claims(std::move(seen));
  return server_->start();
}

bool RoundStore::when_idle(std::function<void()> idle) {
  if (!server_) return false;
  server_->when_idle(std::move(idle));
  return true;
}

void RoundStore::close() {
  if (server_) server_->close();
}

}  // namespace ddprun

#include "agent/round_store.hpp"

#include <utility>

#include "net/listen.hpp"

namespace ddprun {

namespace asio = boost::asio;

RoundStore::RoundStore(asio::ip::tcp::acceptor listener, StoreHost host,
                       std::shared_ptr<spdlog::logger> log)
    : listener_(std::move(listener)),
      host_(host),
      log_(std::move(log)),
      port_(listener_.local_endpoint().port()) {}

Result<RoundStore> RoundStore::listen(asio::any_io_executor executor, const LaunchConfig& config,
                                      std::uint16_t port, std::shared_ptr<spdlog::logger> log) {
  auto listener = net::listen_on(executor, config.store.listen_addr, port);
  if (!listener) return listener.error();
  return RoundStore(std::move(*listener), config.store.host, std::move(log));
}

Result<void> RoundStore::serve() {
  if (host_ == StoreHost::kWorkerZero) {
    // Rank 0 will listen here itself; no other process is likely to get this port in between.
    boost::system::error_code ignored;
    listener_.close(ignored);
    return {};
  }
  served_at_ = net::to_text(listener_.local_endpoint());
  store::ServerOptions options;
  options.log = std::move(log_);
  server_ = std::make_unique<store::Server>(listener_.get_executor(), std::move(listener_),
                                            std::move(options));
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

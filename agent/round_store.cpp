#include "agent/round_store.hpp"

#include <boost/asio/ip/address.hpp>
#include <utility>

#include "net/listen.hpp"

namespace ddprun {

namespace asio = boost::asio;

RoundStore::RoundStore(std::uint16_t port, std::string served_at,
                       std::unique_ptr<store::Server> server)
    : port_(port), served_at_(std::move(served_at)), server_(std::move(server)) {}

Result<RoundStore> RoundStore::open(asio::any_io_executor executor, const LaunchConfig& config,
                                    std::shared_ptr<spdlog::logger> log) {
  boost::system::error_code why;
  const auto address = asio::ip::make_address(config.listen_addr, why);
  if (why) {
    return Error(ErrorKind::kUsage, config.listen_addr + " is not an address to listen on");
  }
  auto listener = net::listen(executor, address, config.master_port);
  if (!listener) return listener.error();
  const auto endpoint = listener->local_endpoint();
  // Rank 0 will listen here itself; nobody else is likely to be given this port in between.
  if (config.store_host == StoreHost::kWorkerZero) return RoundStore(endpoint.port(), "", nullptr);

  store::ServerOptions options;
  options.log = std::move(log);
  auto server = std::make_unique<store::Server>(executor, std::move(*listener), std::move(options));
  if (auto started = server->start(); !started) return started.error();
  return RoundStore(endpoint.port(), net::to_text(endpoint), std::move(server));
}

void RoundStore::close() {
  if (server_) server_->close();
}

}  // namespace ddprun

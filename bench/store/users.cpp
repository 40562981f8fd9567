// bench_store_peers: what the check of a client's user costs (rendezvous/store/server_peers.hpp):
// clients that connect, and the round trip of a SET, of a store with the check and of one without,
// by turns in one process. The goals are ratios of medians.
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/store/scenarios.hpp"
#include "net/listen.hpp"
#include "rendezvous/store/server.hpp"
#include "rendezvous/store/server_peers.hpp"

namespace {

using namespace ddprun::store;

constexpr std::size_t kConnections = 2'000;
constexpr std::size_t kSets = 5'000;
constexpr double kSlowerMax = 1.10;  // of connections, which one more system call each may cost

class Store {
 public:
  explicit Store(std::shared_ptr<Peers> peers) {
    auto listener = ddprun::net::listen_on(io_.get_executor(), "127.0.0.1", 0).value();
    ServerOptions options;
    options.peers = std::move(peers);
    server_ = std::make_unique<Server>(io_.get_executor(), std::move(listener), options);
    port_ = server_->port();
    if (!server_->start()) throw std::runtime_error("the store does not start");
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Store() {
    io_.stop();
    thread_.join();
  }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  [[nodiscard]] bench::Target target(int repeat) const {
    return {"127.0.0.1", port_, {}, std::to_string(repeat)};
  }

 private:
  boost::asio::io_context io_{1};
  std::unique_ptr<Server> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int run(int repeats) {
  const Store open(nullptr);
  const Store checked(std::make_shared<Peers>(Peers::Options{}));
  std::vector<double> connect[2];
  std::vector<double> set[2];
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (const int which : {0, 1}) {
      const bench::Target target = (which == 0 ? open : checked).target(repeat);
      connect[which].push_back(bench::accept(target, kConnections).wall_s);
      set[which].push_back(bench::in_sequence(target, "set", kSets).p50_us);
    }
  }
  const double rate[2] = {kConnections / median(connect[0]), kConnections / median(connect[1])};
  const double slower = rate[0] / rate[1];
  std::printf(
      "connections a second: %.0f without, %.0f with the check: ratio %.3f (at most %.2f)\n",
      rate[0], rate[1], slower, kSlowerMax);
  std::printf("p50 of SET: %.1f us without, %.1f us with the check: ratio %.3f\n", median(set[0]),
              median(set[1]), median(set[1]) / median(set[0]));
  return slower <= kSlowerMax ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  try {
    return run(argc > 1 ? std::stoi(argv[1]) : 15);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_store_peers: %s\n", error.what());
    return 1;
  }
}

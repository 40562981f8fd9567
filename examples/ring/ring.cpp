// ring.py in C++, without MPI and without torch: sockets, and the worker library to find the other
// ranks. The ranks agree on the address of one of them, which sends each rank the address of its
// right neighbour. IPv4 only.
//   ddprun --standalone --nproc-per-node 4 build/example_ring/ring
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ddprun/worker.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace {

using Vector = std::array<double, 4>;

int check(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

class Socket {
 public:
  explicit Socket(int type) : number_(check(::socket(AF_INET, type | SOCK_CLOEXEC, 0), "socket")) {}
  Socket(Socket&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Socket() {
    if (number_ >= 0) ::close(number_);
  }

  void listen(const sockaddr_in& address) const {
    check(::bind(number_, reinterpret_cast<const sockaddr*>(&address), sizeof address), "bind");
    check(::listen(number_, SOMAXCONN), "listen");
  }
  [[nodiscard]] sockaddr_in address() const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    check(::getsockname(number_, reinterpret_cast<sockaddr*>(&address), &size), "getsockname");
    return address;
  }
  void connect(const sockaddr_in& address) const {
    const auto* peer = reinterpret_cast<const sockaddr*>(&address);
    check(::connect(number_, peer, sizeof address), "connect");
  }
  [[nodiscard]] Socket accept() const {
    return Socket(check(::accept4(number_, nullptr, nullptr, SOCK_CLOEXEC), "accept"), Accepted{});
  }
  template <class Value>
  void send(const Value& value) const {
    const auto sent = ::send(number_, &value, sizeof value, MSG_NOSIGNAL);
    if (sent != sizeof value) throw std::runtime_error("send: the other rank has closed its link");
  }
  template <class Value>
  [[nodiscard]] Value receive() const {
    Value value{};
    const auto received = ::recv(number_, &value, sizeof value, MSG_WAITALL);
    if (received != sizeof value) {
      throw std::runtime_error("receive: the other rank has closed its link");
    }
    return value;
  }

 private:
  struct Accepted {};
  Socket(int number, Accepted /*tag*/) : number_(number) {}
  int number_;
};

/// The address of this host that the other ranks can reach: that of the route to the master.
sockaddr_in address_of_this_host(const std::string& master) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int failed = ::getaddrinfo(master.c_str(), nullptr, &hints, &found); failed != 0) {
    throw std::runtime_error(master + ": " + ::gai_strerror(failed));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  sockaddr_in address = *reinterpret_cast<const sockaddr_in*>(found->ai_addr);
  address.sin_port = htons(9);  // any: nothing is sent
  const Socket route(SOCK_DGRAM);
  route.connect(address);
  address = route.address();
  address.sin_port = 0;
  return address;
}

std::string text_of(const sockaddr_in& address) {
  return std::to_string(address.sin_addr.s_addr) + " " + std::to_string(address.sin_port);
}

sockaddr_in address_of(const std::string& text) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = static_cast<in_addr_t>(std::stoul(text));
  address.sin_port = static_cast<in_port_t>(std::stoul(text.substr(text.find(' '))));
  return address;
}

struct Place {
  int rank;
  sockaddr_in address;  // where it listens for its left neighbour
};

/// Sends each rank the address of its right neighbour, and returns that of this rank.
sockaddr_in introduce_all(const Socket& listener, int own_rank, std::size_t world) {
  std::vector<sockaddr_in> addresses(world);
  std::vector<std::pair<int, Socket>> others;
  addresses.at(static_cast<std::size_t>(own_rank)) = listener.address();
  while (others.size() + 1 < world) {
    Socket other = listener.accept();
    const auto place = other.receive<Place>();
    addresses.at(static_cast<std::size_t>(place.rank)) = place.address;
    others.emplace_back(place.rank, std::move(other));
  }
  const auto right_of = [&](int rank) {
    return addresses.at((static_cast<std::size_t>(rank) + 1) % world);
  };
  for (const auto& [rank, other] : others) other.send(right_of(rank));
  return right_of(own_rank);
}

sockaddr_in find_right(const Socket& listener, const ddprun::WorkerEnvironment& worker) {
  const std::string own = text_of(listener.address());
  std::string chosen = own;
  if (ddprun::agree("ring", chosen, std::chrono::seconds(60)) != 0) {
    throw std::runtime_error("the launcher's store does not answer");
  }
  if (chosen == own) {
    return introduce_all(listener, worker.rank, static_cast<std::size_t>(worker.world_size));
  }
  const Socket hub(SOCK_STREAM);
  hub.connect(address_of(chosen));
  hub.send(Place{worker.rank, listener.address()});
  return hub.receive<sockaddr_in>();
}

/// Each vector goes once around the ring.
Vector sum_of_all(const Socket& left, const Socket& right, Vector mine, int world) {
  Vector sum = mine;
  for (int i = 1; i < world; ++i) {
    right.send(mine);
    mine = left.receive<Vector>();
    for (std::size_t k = 0; k < sum.size(); ++k) sum.at(k) += mine.at(k);
  }
  return sum;
}

int pass_messages() {
  std::string problem;
  const auto worker = ddprun::read_worker_environment(problem);
  if (!worker) throw std::runtime_error(problem);
  const Socket listener(SOCK_STREAM);
  listener.listen(address_of_this_host(worker->master_addr));
  const Socket right(SOCK_STREAM);
  right.connect(find_right(listener, *worker));
  const Socket left = listener.accept();

  std::int64_t token = worker->rank == 0 ? 0 : left.receive<std::int64_t>();
  token += worker->rank;
  right.send(token);
  if (worker->rank == 0) {
    std::printf("token: %lld\n", static_cast<long long>(left.receive<std::int64_t>()));
  }

  Vector mine{};
  for (std::size_t i = 0; i < mine.size(); ++i) {
    mine.at(i) = worker->rank * 10.0 + static_cast<double>(i);
  }
  const Vector sum = sum_of_all(left, right, mine, worker->world_size);
  std::printf("rank %d of %d: sum %g %g %g %g\n", worker->rank, worker->world_size, sum[0], sum[1],
              sum[2], sum[3]);
  return 0;
}

}  // namespace

int main() {
  return ddprun::recorded(pass_messages);
}

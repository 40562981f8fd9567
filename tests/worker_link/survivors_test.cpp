// Rounds that are pushed to workers that survive, at the agent's end of the link. The workers are
// sockets of this process, some of them hostile.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "agent/worker_link/server.hpp"
#include "tests/support/server_thread.hpp"

using namespace ddprun;
using namespace ddprun::worker_link;

namespace {

using PacketBytes = std::vector<std::uint8_t>;
constexpr WorkerNumber kSurvivor{3};
const PacketBytes kSurvivesPacket{1, 5};

PacketBytes joined_packet(std::uint8_t round) {
  return {1, 6, round, 0, 0, 0};
}

struct SurvivorReports final : Target {
  [[nodiscard]] std::optional<Owner> owner_of(int) const override {
    return Owner{kSurvivor, is_itself};
  }
  void hear(WorkerNumber worker, const Report& report) override {
    if (worker != kSurvivor) ++others;
    if (std::holds_alternative<Ready>(report)) ++ready_reports;
    if (std::holds_alternative<Survives>(report)) ++survivors;
    if (const auto* joined = std::get_if<Joined>(&report)) rounds.push_back(joined->round);
  }
  std::atomic<bool> is_itself{true};
  std::atomic<int> ready_reports{0};
  std::atomic<int> survivors{0};
  std::atomic<int> others{0};  // Catch2 checks on one thread only, which is not the server's
  std::vector<Round> rounds;   // of the server's thread
};

template <class Condition>
void wait_until(Condition holds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kHung_ms);
  while (!holds()) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
    std::this_thread::yield();
  }
}

/// A process of the worker that has said hello.
class RawWorker {
 public:
  explicit RawWorker(const std::string& path) : socket_(connect_to(path)) {
    const int page = ::memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    REQUIRE(::ftruncate(page, kPageBytes) == 0);
    REQUIRE(::fcntl(page, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
    send_with(page, {1, 1});
    ::close(page);
  }
  ~RawWorker() { ::close(socket_); }
  RawWorker(const RawWorker&) = delete;
  RawWorker& operator=(const RawWorker&) = delete;

  void send(const PacketBytes& packet) const {
    REQUIRE(::send(socket_, packet.data(), packet.size(), MSG_NOSIGNAL) >= 0);
  }
  /// The next packet; empty: the link was closed.
  [[nodiscard]] PacketBytes receive() const {
    PacketBytes packet(kRoundPacketBytesMax + 1);
    const ssize_t count = ::recv(socket_, packet.data(), packet.size(), 0);
    packet.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return packet;
  }

 private:
  static int connect_to(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    REQUIRE(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    const timeval hung{kHung_ms / 1000, 0};
    REQUIRE(::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &hung, sizeof(hung)) == 0);
    return socket;
  }
  void send_with(int descriptor, PacketBytes packet) const {
    iovec content{packet.data(), packet.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &content;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::copy_n(reinterpret_cast<const char*>(&descriptor), sizeof(descriptor),
                reinterpret_cast<char*>(CMSG_DATA(rights)));
    REQUIRE(::sendmsg(socket_, &message, MSG_NOSIGNAL) >= 0);
  }

  int socket_;
};

class Link {
 public:
  Link() {
    auto opened = Server::open(thread.executor(), path, 1, reports);
    REQUIRE(opened.has_value());
    server = std::move(*opened);
    thread.start();
  }
  ~Link() {
    thread.run([&] { server.reset(); });
    CHECK(reports.others == 0);
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  [[nodiscard]] bool survives() {
    bool told = false;
    thread.run([&] { told = server->survives(kSurvivor); });
    return told;
  }
  [[nodiscard]] bool push(int round, std::size_t bytes = 1) {
    PushedRound pushed{Round(round), {}};
    pushed.variables["RANK"] = std::string(bytes, '7');
    bool taken = false;
    thread.run([&] { taken = server->push(kSurvivor, pushed); });
    return taken;
  }
  [[nodiscard]] std::vector<Round> joined() {
    std::vector<Round> rounds;
    thread.run([&] { rounds = reports.rounds; });
    return rounds;
  }
  /// Everything that was sent before has been acted on.
  void settle(const RawWorker& worker) {
    const int before = reports.ready_reports;
    worker.send({1, 3});
    wait_until([&] { return reports.ready_reports > before; });
  }

  const std::string path = "/tmp/ddprun-test-survivors-" + std::to_string(::getpid()) + ".link";
  ServerThread thread;
  SurvivorReports reports;
  std::unique_ptr<Server> server;
};

}  // namespace

TEST_CASE("a round is pushed to a worker that survives, and it joins once") {
  Link link;
  const RawWorker worker(link.path);
  link.settle(worker);
  CHECK_FALSE(link.survives());
  CHECK_FALSE(link.push(2));
  worker.send(kSurvivesPacket);
  worker.send(kSurvivesPacket);
  link.settle(worker);
  CHECK(link.survives());
  CHECK(link.reports.survivors == 1);
  REQUIRE(link.push(2));
  CHECK(worker.receive() == PacketBytes{1, 17, 2, 0, 0, 0, 1, 'R', 'A', 'N', 'K', '=', '7', 0});
  worker.send(joined_packet(2));
  worker.send(joined_packet(2));
  link.settle(worker);
  CHECK(link.joined() == std::vector<Round>{Round(2)});
}

TEST_CASE("a worker cannot join a round that was not pushed, or that another one has replaced") {
  Link link;
  const RawWorker worker(link.path);
  worker.send(kSurvivesPacket);
  worker.send(joined_packet(1));
  link.settle(worker);
  REQUIRE(link.push(2));
  REQUIRE(link.push(3));
  worker.send(joined_packet(2));
  worker.send(joined_packet(4));
  link.settle(worker);
  CHECK(link.joined().empty());
  worker.send(joined_packet(3));
  link.settle(worker);
  CHECK(link.joined() == std::vector<Round>{Round(3)});
}

TEST_CASE("only the worker itself survives, not a process below it") {
  Link link;
  link.reports.is_itself = false;
  const RawWorker child(link.path);
  child.send(kSurvivesPacket);
  CHECK(child.receive().empty());
  CHECK_FALSE(link.survives());
}

TEST_CASE("rounds for a worker that does not read replace each other, and nothing waits") {
  constexpr int kRounds = 200;
  Link link;
  const RawWorker worker(link.path);
  worker.send(kSurvivesPacket);
  link.settle(worker);
  for (int round = 2; round <= kRounds; ++round) REQUIRE(link.push(round, kVariablesBytesMax - 6));
  CHECK_FALSE(link.push(kRounds + 1, kVariablesBytesMax - 5));
  link.settle(worker);  // it is heard as before
  PacketBytes packet;
  int received = 0;
  do {
    packet = worker.receive();
    REQUIRE(packet.size() == kRoundPacketBytesMax);
    ++received;
  } while (packet[2] != kRounds);
  CHECK(received < kRounds / 2);
  worker.send(joined_packet(kRounds));
  link.settle(worker);
  CHECK(link.joined() == std::vector<Round>{Round(kRounds)});
}

TEST_CASE("a worker that has gone, or was forgotten, does not survive") {
  Link link;
  {
    const RawWorker worker(link.path);
    worker.send(kSurvivesPacket);
    link.settle(worker);
    CHECK(link.survives());
  }
  wait_until([&] { return !link.survives(); });
  const RawWorker worker(link.path);
  worker.send(kSurvivesPacket);
  link.settle(worker);
  link.thread.run([&] { link.server->forget(kSurvivor); });
  CHECK(worker.receive().empty());
  CHECK_FALSE(link.survives());
  CHECK_FALSE(link.push(2));
}

// Who is admitted to a store: the user of a client on this machine, the address of any other.
#include "rendezvous/store/server_peers.hpp"

#include <arpa/inet.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <utility>

#include "tests/store/live.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun::store;
using namespace ddprun::store::requests;
using namespace ddprun;

namespace {

constexpr uid_t kOtherUid = 65533;

std::shared_ptr<Peers> make_peers(Peers::Options options = {}) {
  return std::make_shared<Peers>(std::move(options));
}

/// The bytes of the answer to a client that connects and asks as another user.
std::size_t answer_as_other_user(std::uint16_t port) {
  std::size_t answered = 0;
  std::thread([&] {
    // The system call alone changes the user of this thread only.
    REQUIRE(::syscall(SYS_setresuid, kOtherUid, kOtherUid, kOtherUid) == 0);
    Client client(port);
    answered = client.ask(validate() + ping(7), 4).size();
  }).join();
  return answered;
}

bool cannot_change_user() {
  if (::geteuid() == 0) return false;
  WARN("skipped: only root can connect as another user");
  return true;
}

sockaddr_storage from_address(const char* address) {
  sockaddr_storage from{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(from);
  v4.sin_family = AF_INET;
  v4.sin_port = htons(4711);
  REQUIRE(::inet_pton(AF_INET, address, &v4.sin_addr) == 1);
  return from;
}

/// Whether a client is served that seems to come from `address`.
bool serves(LiveServer& server, const char* address) {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
  server.adopt(ends[0], from_address(address), validate() + ping(7));
  pollfd entry{ends[1], POLLIN, 0};
  REQUIRE(::poll(&entry, 1, kHung_ms) == 1);
  char answer[4];
  const ssize_t count = ::recv(ends[1], answer, sizeof(answer), 0);
  ::close(ends[1]);
  return count == 4;
}

}  // namespace

TEST_CASE("another user of this machine is closed without an answer, and named once") {
  if (cannot_change_user()) return;
  for (const auto ways : {net::SocketOwners::Ways::kAll, net::SocketOwners::Ways::kTables}) {
    Peers::Options options;
    options.ways = ways;
    LiveServer server({}, make_peers(std::move(options)));
    for (int times = 0; times < 3; ++times) CHECK(answer_as_other_user(server.port()) == 0);
    CHECK(connect(server.port()).ask(set("k", "v") + get("k"), 9) == text("v"));
    CHECK(server.counters().refused == 3);
    const std::string log = server.log();
    const std::string cause = "a process of uid 65533" + test::kOtherUser;
    CHECK_THAT(log, ContainsSubstring("[warning] store closed a connection: " + cause));
    CHECK_THAT(log, ContainsSubstring("--store-open"));
    CHECK(log.find("[warning]") == log.rfind("[warning]"));
  }
}

TEST_CASE("a user that workers run as is admitted, and without the check every user is") {
  if (cannot_change_user()) return;
  std::atomic<int> asked = 0;
  Peers::Options options;
  options.runs_as = [&](uid_t uid) {
    ++asked;
    return uid == kOtherUid;
  };
  LiveServer server({}, make_peers(std::move(options)));
  for (int times = 0; times < 3; ++times) CHECK(answer_as_other_user(server.port()) == 4);
  CHECK(asked == 1);
  LiveServer open;
  CHECK(answer_as_other_user(open.port()) == 4);
}

TEST_CASE("where the system does not tell users every process is admitted, with one warning") {
  Peers::Options options;
  options.ways = net::SocketOwners::Ways::kTables;
  options.tables = "/nonexistent";
  LiveServer server({}, std::move(options));
  for (int times = 0; times < 3; ++times) {
    CHECK(connect(server.port()).ask(set("k", "v") + get("k"), 9) == text("v"));
  }
  const std::string log = server.log();
  CHECK_THAT(log, ContainsSubstring("every user of this machine can use the store"));
  CHECK(log.find("[warning]") == log.rfind("[warning]"));
}

// The port of a round is the kernel's choice. Should another run get the number:
TEST_CASE("a client of an ended store gets an error, also when another store has its port") {
  auto before = std::make_unique<LiveServer>(Limits{}, make_peers());
  const std::uint16_t port = before->port();
  Client client = connect(port);
  Client waiter = connect(port);
  CHECK(client.ask(set("k", "old") + get("k"), 11) == text("old"));
  waiter.send(wait({"never"}));
  before->close();
  LiveServer after({}, make_peers(), port);
  CHECK(connect(port).ask(set("k", "new") + set("never", "") + get("k"), 11) == text("new"));
  CHECK(waiter.closed());
  CHECK(client.ask(get("k"), 1).empty());
  if (cannot_change_user()) return;
  CHECK(answer_as_other_user(port) == 0);
}

TEST_CASE("an address of no node is closed without an answer, counted, and named once") {
  const auto peers = make_peers();
  peers->add({"192.0.2.7", "::ffff:192.0.2.8", "2001:db8::1", "no address"});
  LiveServer server({}, peers);
  CHECK(serves(server, "192.0.2.7"));
  CHECK(serves(server, "192.0.2.8"));
  for (int times = 0; times < 3; ++times) CHECK_FALSE(serves(server, "192.0.2.9"));
  CHECK_FALSE(serves(server, "192.0.2.10"));
  CHECK(server.counters().refused == 4);
  const std::string log = server.log();
  CHECK_THAT(log, ContainsSubstring(test::kNoNodesAddress));
  CHECK_THAT(log, ContainsSubstring("pass --store-open to the ddprun that serves the store; a node "
                                    "that torchrun was started on belongs to no run of ddprun "
                                    "peer=192.0.2.9:4711"));
  const auto first = log.find("[warning]");
  const auto last = log.rfind("[warning]");
  CHECK_THAT(log.substr(last), ContainsSubstring("peer=192.0.2.10"));
  CHECK(log.rfind("[warning]", last - 1) == first);
  peers->admit_every_address();
  CHECK(serves(server, "192.0.2.9"));
}

// The server over real sockets: framing, closing, hostile and slow clients, descriptors, memory.
#include "rendezvous/store/server.hpp"

#include <fcntl.h>
#include <sys/resource.h>

#include <random>
#include <vector>

#include "rendezvous/store/server_impl.hpp"
#include "tests/store/live.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun::store;
using namespace ddprun::store::requests;
using namespace ddprun::test;

TEST_CASE("a value of 8 MiB is stored and returned, next to small requests") {
  LiveServer server;
  std::string value(8 << 20, '\0');
  for (std::size_t at = 0; at < value.size(); ++at) value[at] = static_cast<char>(at * 31 >> 4);
  Client client = connect(server.port());
  std::thread sender([&] { client.send(set("k", value) + get("k") + ping(9)); });
  CHECK(client.receive(value.size() + 12) == text(value) + u32(9));
  sender.join();
}

TEST_CASE("the store tells who waits for which key, the rarest key first") {
  LiveServer server;
  Client most = connect(server.port());
  Client other = connect(server.port());
  Client odd = connect(server.port());
  const std::string longest = std::string(1'000, 'a') + "/rank7";
  most.send(wait({"k"}));
  other.send(wait({"k"}));
  odd.send(wait({longest, "k2"}));
  server.until_waits(4);
  const std::vector<ddprun::StoreWait> told = server.told_waits();
  REQUIRE(told.size() == 3);
  CHECK(told[0].key.size() == ddprun::kStoreKeyMax);
  CHECK(told[0].key.ends_with("/rank7"));
  CHECK(told[0].keys == 2);
  CHECK(told[0].port == odd.port());
  CHECK(told[0].address == "127.0.0.1");
  CHECK(told[1].key == "k");
  CHECK(told[2].key == "k");
  // One key of two is there, and then the wait is over.
  connect(server.port()).ask(set(longest, "") + set("k", "") + ping(1), 4);
  CHECK(server.told_waits().size() == 1);
  CHECK(server.told_waits()[0].key == "k2");
  CHECK(server.told_waits()[0].keys == 1);
}

TEST_CASE("the store tells of two connected processes that are rank 0") {
  LiveServer server;
  std::vector<ddprun::RankClaims> seen;
  server.on_rank_claims([&](const ddprun::RankClaims& claims) { seen.push_back(claims); });
  const std::string rank_0 = set("/default_pg/0//cpu//0/0", "address");
  const auto announce = [&](Client& client, std::uint32_t pid) {
    client.ask(ping(pid) + rank_0 + ping(pid), 8);
  };
  // The one that is gone has a successor, which is seen twice without harm.
  auto gone = std::make_unique<Client>(connect(server.port()));
  announce(*gone, 100);
  gone.reset();
  REQUIRE(eventually([&] { return server.connections() == 0; }));
  Client first = connect(server.port());
  announce(first, 200);
  Client again = connect(server.port());
  announce(again, 200);
  Client untold(server.port());  // an old release of torch
  untold.ask(validate() + rank_0 + get("k"), 8);
  CHECK(server.connections() == 3);
  CHECK(seen.empty());
  Client second = connect(server.port());
  announce(second, 300);
  CHECK(server.connections() == 4);
  REQUIRE(seen.size() == 1);
  CHECK(seen[0] == ddprun::RankClaims{200, 300});
}

TEST_CASE("the store tells of a bounded number of waits") {
  LiveServer server;
  std::vector<Client> clients;
  for (std::size_t i = 0; i < ddprun::kStoreWaitsMax + 5; ++i) {
    clients.push_back(connect(server.port()));
    clients.back().send(wait({"k"}));
  }
  server.until_waits(clients.size());
  CHECK(server.told_waits().size() == ddprun::kStoreWaitsMax);
}

TEST_CASE("SET racing CANCEL_WAIT is answered 01 or 00 01, never otherwise") {
  LiveServer server;
  Client waiter = connect(server.port());
  Client setter = connect(server.port());
  for (int times = 0; times < 2000; ++times) {
    const std::string key = "k" + std::to_string(times);
    waiter.send(wait({key}));
    setter.send(set(key, ""));
    waiter.send(cancel_wait() + ping(77));
    std::string reply = waiter.receive(5);
    if (reply != hex("01") + u32(77)) {
      reply += waiter.receive(1);
      REQUIRE(reply == hex("00 01") + u32(77));
    }
  }
}

TEST_CASE("requests sent before a half-close are executed and answered") {
  LiveServer server;
  for (int times = 0; times < 50; ++times) {
    Client client = connect(server.port());
    client.send(add("n", 1) + get("n"));
    client.finish_sending();
    CHECK(client.receive(8) == i64(times + 1));
    CHECK(client.receive(100).size() == 8 + std::to_string(times + 1).size());
  }
}

TEST_CASE("a half-closed client that waits is closed") {
  LiveServer server;
  Client client = connect(server.port());
  client.send(wait({"never"}));
  client.finish_sending();
  CHECK(client.closed());
}

TEST_CASE("a request truncated by FIN or RST has no effect") {
  LiveServer server;
  const std::string bytes = set("k", "value");
  Client fin = connect(server.port());
  fin.send(bytes.substr(0, bytes.size() - 1));
  fin.finish_sending();
  CHECK(fin.closed());
  Client rst = connect(server.port());
  rst.send(bytes.substr(0, bytes.size() - 1));
  rst.reset();
  CHECK(eventually([&] { return server.connections() == 0; }));
  CHECK(connect(server.port()).ask(check({"k"}), 1) == hex("01"));
}

TEST_CASE("foreign protocols are closed without a reply, logged once, and disturb no client") {
  LiveServer server;
  Client bystander = connect(server.port());
  const std::vector<std::string> probes{"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                        "\r\n\r\n",
                                        "SSH-2.0-probe\r\n",
                                        std::string(64, '\xff'),
                                        std::string(64, '\0'),
                                        hex("16 03 01 02 00 01 00 01 fc 03 03"),
                                        hex("00 01 02 03 04 05"),
                                        hex("03 00 00 00 00 00 00 00 40"),
                                        multi_set({{"k", "v"}}) + ping(1)};
  for (const std::string& first : probes) {
    Client probe(server.port());
    probe.send(first);
    CHECK(probe.closed());
  }
  CHECK(bystander.ask(ping(3) + get_num_keys(), 12) == u32(3) + i64(0));
  const std::string log = server.log();
  const std::string line =
      "[warning] store closed a connection: the first bytes are not a c10d request";
  CHECK(log.find(line) != std::string::npos);
  CHECK(log.find(line) == log.rfind(line));
  CHECK_THAT(log, ContainsSubstring("peer=127.0.0.1:"));
}

TEST_CASE("strangers from many addresses do not fill the log of the store") {
  LiveServer server;
  in_addr_t from = INADDR_LOOPBACK;
  const auto refuse_one = [&] {
    Client stranger(server.port(), ++from);
    stranger.send("zzzzz");
    CHECK(stranger.closed());
  };
  const auto warnings = [&] {
    const std::string log = server.log();
    std::size_t count = 0;
    for (std::size_t at = 0; (at = log.find("[warning]", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  for (int time = 0; time < 3 * kLogLinesMax; ++time) refuse_one();
  CHECK(warnings() < 2 * kLogLinesMax);
}

TEST_CASE("connections of one address leave a quarter of the store to others, also one by one") {
  Limits limits;
  limits.store_bytes = 16 * kMiB;
  LiveServer server(limits);
  // Twelve fit in three quarters with what is stored beside them; also while the last one arrives.
  const std::string value(kMiB - kMiB / 16, 'v');
  const auto fill_from = [&](in_addr_t from) {
    int taken = 0;
    for (int key = 0; key < 32; ++key) {
      Client client(server.port(), from);
      client.send(requests::validate() +
                  requests::set(std::to_string(from) + std::to_string(key), value) +
                  requests::ping(8));
      taken += client.receive(4).size() == 4 ? 1 : 0;
    }
    return taken;
  };
  const int first = fill_from(INADDR_LOOPBACK + 1);
  CHECK(first >= 12);
  CHECK(first <= 13);
  CHECK(fill_from(INADDR_LOOPBACK + 2) >= 2);
  CHECK_THAT(server.log(), ContainsSubstring("more than three quarters of store_bytes"));
}

TEST_CASE("random bytes after a valid handshake leave the server running and small") {
  LiveServer server;
  std::mt19937 random(20240601);  // a fixed seed, so that failures are reproducible
  const std::size_t before = resident_bytes();
  for (int times = 0; times < 100; ++times) {
    Client client = connect(server.port());
    std::string noise(64 * 1024, '\0');
    for (char& byte : noise) byte = static_cast<char>(random());
    client.send(noise);
  }
  CHECK(connect(server.port()).ask(ping(1), 4) == u32(1));
  CHECK(resident_bytes() < before + (32 << 20));
}

TEST_CASE(
    "300 clients with half a request, half a handshake or nothing slow down no other client") {
  LiveServer server;
  std::vector<Client> slow;
  for (int at = 0; at < 100; ++at) {
    slow.emplace_back(server.port());
    slow.emplace_back(server.port()).send(hex("00 ce f7"));
    slow.push_back(connect(server.port()));
    slow.back().send(set("k", "value").substr(0, 12));
  }
  Client quick = connect(server.port());
  for (std::uint32_t at = 0; at < 100; ++at) CHECK(quick.ask(ping(at), 4) == u32(at));
  CHECK(slow.front().silent());
  CHECK(slow.front().ask(hex("06"), 8) == i64(0));  // a legacy client that was slow to start
}

TEST_CASE("a client that does not read is not served further until it reads") {
  LiveServer server;
  Client reader = connect(server.port());
  reader.send(set("k", std::string(1 << 20, 'v')));
  CHECK(reader.ask(check({"k"}), 1) == hex("00"));
  const std::size_t before = resident_bytes();
  Client lazy = connect(server.port());
  std::string many;
  for (int at = 0; at < 1000; ++at) {
    many += get("k") + add("served", 1) + set("k", std::string(1 << 10, static_cast<char>(at)));
  }
  ::fcntl(lazy.fd(), F_SETFL, O_NONBLOCK);
  const ssize_t taken = ::send(lazy.fd(), many.data(), many.size(), MSG_NOSIGNAL);
  REQUIRE(taken > 0);
  ::fcntl(lazy.fd(), F_SETFL, 0);
  for (std::uint32_t at = 0; at < 100; ++at) CHECK(reader.ask(ping(at), 4) == u32(at));
  CHECK(resident_bytes() < before + (64 << 20));
  CHECK(lazy.receive((1 << 20) + 16).size() == (1 << 20) + 16);
}

TEST_CASE("1000 GETs of a mebibyte by a client that does not read do not grow the server") {
  LiveServer server;
  Client client = connect(server.port());
  client.send(set("k", std::string(1 << 20, 'v')));
  CHECK(client.ask(check({"k"}), 1) == hex("00"));
  const std::size_t before = resident_bytes();
  std::string many;
  for (int at = 0; at < 1000; ++at) many += get("k");
  client.send(many);
  Client other = connect(server.port());
  CHECK(other.ask(ping(1), 4) == u32(1));
  CHECK(resident_bytes() < before + (16 << 20));
  const std::size_t all = std::size_t{1000} * ((1 << 20) + 8);
  std::size_t total = 0;
  while (total < all) {
    const std::size_t count = client.receive(std::min(all - total, std::size_t{1} << 20)).size();
    if (count == 0) break;
    total += count;
  }
  CHECK(total == all);
}

TEST_CASE("clients that do not read leave reply budget for the lists of others") {
  Limits limits;
  limits.reply_bytes = 4 << 20;
  LiveServer server(limits);
  Client other = connect(server.port());
  other.send(set("k", std::string(4000, 'v')));
  std::string many;
  for (int at = 0; at < 2000; ++at) many += get("k");
  std::vector<Client> lazy;
  for (int at = 0; at < 20; ++at) lazy.push_back(connect(server.port()));
  for (Client& client : lazy) client.send(many);
  const std::string pair = text(std::string(4000, 'v'));
  for (int times = 0; times < 300; ++times) {
    const bool whole = other.ask(multi_get({"k", "k"}), 2 * pair.size()) == pair + pair;
    REQUIRE(whole);
  }
  for (Client& client : lazy)
    CHECK(client.receive(2000 * pair.size()).size() == 2000 * pair.size());
}

TEST_CASE("a client that requests list after list starves no other client") {
  LiveServer server;
  Client busy = connect(server.port());
  std::string queues;
  for (int at = 0; at < 50'000; ++at) queues += queue_push("q" + std::to_string(at), "");
  CHECK(busy.ask(queues + ping(1), 4) == u32(1));
  Client other = connect(server.port());
  busy.send(std::string(60'000, static_cast<char>(Opcode::kListKeys)));
  for (std::uint32_t at = 0; at < 20; ++at) REQUIRE(other.ask(ping(at), 4) == u32(at));
  CHECK(server.connections() == 2);                  // other handlers of the process run as well
  CHECK(busy.receive(80) == std::string(80, '\0'));  // no keys, ten times
}

TEST_CASE("a request of many keys ends the turn of its client") {
  LiveServer server;
  Client busy = connect(server.port());
  Client other = connect(server.port());
  REQUIRE(busy.ask(add("n", 0), 8) == i64(0));
  const std::vector<std::string> names(1100, "n");
  const std::vector<std::string> long_requests{check(names), multi_get(names),
                                               wait(names) + add("n", 0)};
  const std::vector<std::size_t> sizes{1, names.size() * text("0").size(), 1 + 8};
  for (std::size_t kind = 0; kind < long_requests.size(); ++kind) {
    std::string many;
    for (int at = 0; at < 3; ++at) many += long_requests[kind] + add("served", 1);
    server.on_thread([&] {  // so that both clients are served in one batch
      busy.send(many);
      other.send(add("served", 0));
    });
    const std::string seen = other.receive(8);
    CHECK(seen == i64(static_cast<std::int64_t>(kind) * 3));
    CHECK(busy.receive(3 * (sizes[kind] + 8)).size() == 3 * (sizes[kind] + 8));
  }
}

TEST_CASE("clients that disconnect with many waits leave the other handlers their turn") {
  LiveServer server;
  std::vector<std::string> names;
  for (int at = 0; at < 1100; ++at) names.push_back("never" + std::to_string(at));
  std::vector<Client> clients;
  for (int at = 0; at < 300; ++at) {  // more than one batch of events
    clients.push_back(connect(server.port()));
    clients.back().send(wait(names));
  }
  Client last = connect(server.port());
  REQUIRE(last.ask(ping(1), 4) == u32(1));
  REQUIRE(eventually([&] { return server.waits() == 300 * names.size(); }));
  CHECK(server.leaves_turns([&] { clients.clear(); }, 1));
}

TEST_CASE("ten thousand pipelined requests of a client that reads late are all answered") {
  LiveServer server;
  Client client = connect(server.port());
  client.send(set("k", std::string(2000, 'v')));
  std::string many;
  for (int at = 0; at < 10'000; ++at) many += get("k");
  std::thread sender([&] { client.send(many + ping(5)); });
  const std::string replies = client.receive(10'000 * 2008 + 4);
  sender.join();
  CHECK(replies.size() == 10'000 * 2008 + 4);
  CHECK(replies.substr(replies.size() - 4) == u32(5));
}

TEST_CASE("memory of deleted values returns to the system") {
  LiveServer server;
  const std::string value(1 << 20, 'v');
  Client client = connect(server.port());
  CHECK(client.ask(ping(1), 4) == u32(1));
  const std::size_t before = resident_bytes();
  for (int at = 0; at < 200; ++at) {
    client.send(op(Opcode::kSet) + text("k" + std::to_string(at % 100)) + u64(value.size()));
    client.send(value);
  }
  CHECK(client.ask(get_num_keys(), 8) == i64(100));
  CHECK(resident_bytes() > before + (90 << 20));
  for (int at = 0; at < 100; ++at) {
    CHECK(client.ask(delete_key("k" + std::to_string(at)), 8) == i64(1));
  }
  // The last few blocks are cached briefly for the next large values.
  CHECK(eventually([&] { return resident_bytes() < before + (16 << 20); }));
}

TEST_CASE("closing the server unblocks clients at once, and another server may follow") {
  for (int round = 0; round < 20; ++round) {
    LiveServer server;
    std::vector<Client> clients;
    for (int at = 0; at < 50; ++at) {
      clients.push_back(connect(server.port()));
      clients.back().send(at % 2 == 0 ? wait({"never"}) : set("half", "a").substr(0, 5));
    }
    server.close();
    for (Client& client : clients) CHECK(client.closed());
  }
}

TEST_CASE("one client too many is closed, and the log names the limit") {
  Limits limits;
  limits.connections = 3;
  LiveServer server(limits);
  std::vector<Client> clients;
  for (int at = 0; at < 3; ++at) clients.push_back(connect(server.port()));
  CHECK(Client(server.port()).closed());
  CHECK_THAT(server.log(), ContainsSubstring("connections would be 4, more than connections = 3"));
  clients.pop_back();
  CHECK(eventually([&] { return server.connections() == 2; }));
  CHECK(connect(server.port()).ask(ping(1), 4) == u32(1));
}

TEST_CASE("out of descriptors, connected clients are served, and new ones once others leave") {
  LiveServer server;
  Client old = connect(server.port());
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  std::vector<Client> served;
  std::vector<int> taken;
  for (int at = 0; at < 10; ++at) served.push_back(connect(server.port()));
  Client late_one(server.port());
  CHECK(eventually([&] { return server.connections() == 12; }));
  const rlimit low{static_cast<rlim_t>(late_one.fd()) + 20, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &low);
  for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) taken.push_back(fd);
  ::close(taken.back());
  taken.pop_back();
  Client unserved(server.port());  // its own socket uses the last descriptor
  unserved.send(validate() + ping(8));
  CHECK(
      eventually([&] { return server.log().find("store " + kTooManyFiles) != std::string::npos; }));
  CHECK(old.ask(ping(2), 4) == u32(2));
  CHECK(unserved.silent());
  served.pop_back();
  CHECK(unserved.receive(4) == u32(8));
  ::setrlimit(RLIMIT_NOFILE, &before);
  for (const int fd : taken) ::close(fd);
}

TEST_CASE("2000 clients that connect and reset leave a working server and no open descriptor") {
  LiveServer server;
  for (int at = 0; at < 2000; ++at) Client(server.port()).reset();
  for (int at = 0; at < 2000; ++at) {
    Client client(server.port());
    client.send(validate() + wait({"k" + std::to_string(at % 10)}));
  }
  CHECK(eventually([&] { return server.connections() == 0; }));
  CHECK(connect(server.port()).ask(get_num_keys(), 8) == i64(0));
}

TEST_CASE("a long list of one client starves no other client") {
  LiveServer server;
  Client busy = connect(server.port());
  Client other = connect(server.port());
  Pairs pairs;
  for (int at = 0; at < 131'072; ++at) pairs.emplace_back("key" + std::to_string(at), "v");
  std::thread sender([&] { busy.send(multi_set(pairs) + ping(1)); });
  for (std::uint32_t at = 0; at < 200; ++at) {
    const auto begin = std::chrono::steady_clock::now();
    CHECK(other.ask(ping(at), 4) == u32(at));
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  }
  CHECK(busy.receive(4) == u32(1));
  sender.join();
  CHECK(other.ask(get_num_keys(), 8) == i64(131'072));
}

TEST_CASE("the server listens on the given address only") {
  LiveServer server;
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in other{};
  other.sin_family = AF_INET;
  other.sin_port = htons(server.port());
  other.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);  // 127.0.0.2 is also this host
  CHECK(::connect(fd, reinterpret_cast<sockaddr*>(&other), sizeof(other)) == -1);
  ::close(fd);
}

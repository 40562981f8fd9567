// What one client may cost the others: time and memory, over real sockets.
#include <time.h>

#include <atomic>
#include <vector>

#include "tests/store/live.hpp"
#include "tests/support/sanitizers.hpp"

using namespace ddprun::store;
using namespace ddprun::store::requests;
using namespace ddprun;

namespace {

double thread_cpu_s() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Sets this many keys of six bytes, without a value; the size of their list.
std::size_t set_keys(Client& client, int count) {
  for (int at = 0; at < count;) {
    std::string many;
    for (int in_one = 0; in_one < 10'000 && at < count; ++in_one, ++at) {
      many += set(std::to_string(100'000 + at), "");
    }
    client.send(many);
  }
  REQUIRE(client.ask(get_num_keys(), 8) == i64(count));
  return 8 + static_cast<std::size_t>(count) * 14;
}

}  // namespace

TEST_CASE("a long list is told in many turns, each a small part of its time") {
  LiveServer server;
  Client lister = connect(server.port());
  const std::size_t size = set_keys(lister, 100'000);
  std::atomic<bool> done = false;
  double begun = 0;
  double last = 0;
  double longest = 0;
  std::promise<void> ended;
  std::function<void()> look = [&] {  // takes a turn beside the store's
    const double now = thread_cpu_s();
    longest = std::max(longest, now - last);
    last = now;
    done ? ended.set_value() : server.post(std::ref(look));
  };
  server.on_thread([&] {
    begun = last = thread_cpu_s();
    lister.send(list_keys());
    server.post(std::ref(look));
  });
  CHECK(lister.receive(size).size() == size);
  done = true;
  ended.get_future().wait();
  CHECK(longest < (last - begun) / 5);
}

TEST_CASE("a waiter that is woken while it reads a list gets the list whole") {
  LiveServer server;
  Client lister = connect(server.port());
  const std::size_t size = set_keys(lister, 50'000);
  lister.send(wait({"k"}) + list_keys() + ping(7));
  Client other = connect(server.port());
  other.send(set("k", "v") + delete_key("100000") + delete_key("149999"));
  std::string all = lister.receive(size + 1 + 4);
  REQUIRE(all.size() == size + 5);
  const std::string zero(1, '\0');
  if (all[0] == 0) {  // it was woken before
    all.erase(0, 1);
    CHECK(all.substr(size) == u32(7));
  } else {
    const bool behind_list = all.substr(size) == zero + u32(7);
    CHECK((behind_list || all.substr(size) == u32(7) + zero));
  }
  std::size_t keys = 0;
  for (std::size_t at = 8; at + 14 <= size; at += 14) {
    REQUIRE(all.substr(at, 8) == u64(6));
    ++keys;
  }
  CHECK(keys == 50'000);
}

TEST_CASE("one client cannot fill the store: beyond half of it the next value closes it") {
  Limits limits;
  limits.store_bytes = 64 << 20;
  LiveServer server(limits);
  const std::string value(1 << 20, 'v');
  Client greedy = connect(server.port());
  for (int at = 0; at < 40; ++at) greedy.send(set("k" + std::to_string(at), value));
  CHECK(greedy.closed());
  CHECK_THAT(server.log(), ContainsSubstring("SET: this connection has added more than half of "
                                             "store_bytes"));
  Client other(server.port(), INADDR_LOOPBACK + 1);  // one address has three quarters at most
  other.send(validate());
  for (int at = 0; at < 20; ++at) other.send(set("o" + std::to_string(at), value));
  CHECK(other.ask(ping(1), 4) == u32(1));
}

TEST_CASE("a client whose values others delete may add any number of them") {
  Limits limits;
  limits.store_bytes = 64 << 20;
  LiveServer server(limits);
  const std::string value(1 << 20, 'v');
  Client producer = connect(server.port());
  Client other = connect(server.port());
  for (int at = 0; at < 200; ++at) {
    producer.send(set("p" + std::to_string(at), value));
    REQUIRE(producer.ask(ping(1), 4) == u32(1));
    REQUIRE(other.ask(delete_key("p" + std::to_string(at)), 8) == i64(1));
  }
}

TEST_CASE("a store that forgets gives its memory back some time after its last client") {
  LiveServer server(std::chrono::milliseconds(50));
  const std::size_t before = resident_bytes();
  const std::string value(1 << 20, 'v');
  {
    Client client = connect(server.port());
    for (int at = 0; at < 100; ++at) client.send(set("k" + std::to_string(at), value));
    CHECK(client.ask(get_num_keys(), 8) == i64(100));
  }
  CHECK(eventually([&] { return server.counters().keys == 0; }));
  CHECK(server.counters().bytes == 0);
  CHECK(eventually([&] { return resident_bytes() < before + (24 << 20); }));
  Client next = connect(server.port());
  CHECK(next.ask(set("k", "v") + get("k"), 9) == text("v"));
}

// A sanitizer keeps what is freed.
#if !DDPRUN_TEST_SANITIZED
TEST_CASE("the memory of many small keys goes back to the system with the store") {
  const std::size_t before = resident_bytes();
  {
    LiveServer server;
    Client client = connect(server.port());
    set_keys(client, 200'000);
    CHECK(resident_bytes() > before + (24 << 20));
    server.close();
  }
  CHECK(eventually([&] { return resident_bytes() < before + (12 << 20); }));
}
#endif

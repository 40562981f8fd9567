// WAIT, CANCEL_WAIT, BARRIER and CHECK: which clients wait, and for how long.
#include "tests/store/harness.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun::store;
using namespace ddprun::store::requests;

namespace {
const std::string kReady = hex("00");
const std::string kCancelled = hex("01");
}  // namespace

TEST_CASE("CHECK reports whether every name is present") {
  Harness store;
  store.send(1, set("a", ""));
  CHECK(store.send(1, check({"a"})) == hex("00"));
  CHECK(store.send(1, check({"b"})) == hex("01"));
  CHECK(store.send(1, check({"a", "b"})) == hex("01"));
  CHECK(store.send(1, check({"b", "a"})) == hex("01"));
  CHECK(store.send(1, check({"a", "a"})) == hex("00"));
}

namespace {
Request request_of(Opcode op, const std::vector<std::string>& names) {
  Request request;
  request.op = op;
  for (const std::string& name : names) {
    request.keys.add(name);
    request.keys.end_key();
  }
  return request;
}
}  // namespace

TEST_CASE("a request of many names is carried out in parts, and others are served in between") {
  constexpr ConnectionId kManyNames{1};
  constexpr ConnectionId kFewNames{2};
  Limits limits;
  limits.names_per_turn = 2;
  Memory memory(limits.store_bytes);
  ddprun::Budget copied(limits.reply_bytes);
  Store store(limits, memory);
  ReplyQueue replies(copied);
  ReplyQueue others(copied);
  const auto set = [&](const std::string& name) {
    Request request;
    request.op = Opcode::kSet;
    request.key = name;
    CHECK_FALSE(store.step(kFewNames, request, others));
    return store.woken();
  };
  Request wait = request_of(Opcode::kWait, {"a", "b", "c", "d", "e"});
  CHECK_FALSE(store.step(kManyNames, wait, replies));
  REQUIRE(store.is_unfinished(kManyNames));
  CHECK_FALSE(store.go_on(kManyNames, 2, replies));
  CHECK(store.waits() == 2);
  for (const char* name : {"a", "b"}) CHECK(set(name).empty());  // it is not woken before the end
  CHECK(set("c").empty());
  CHECK_FALSE(store.go_on(kManyNames, 2, replies));
  CHECK_FALSE(store.go_on(kManyNames, 2, replies));
  CHECK_FALSE(store.is_unfinished(kManyNames));
  CHECK(replies.empty());
  CHECK(set("d").empty());
  CHECK(set("e") == std::vector<ConnectionId>{kManyNames});
  for (const bool all : {true, false}) {
    Request check = request_of(Opcode::kCheck, {"a", "b", all ? "c" : "x", "d", "e"});
    CHECK_FALSE(store.step(kManyNames, check, replies));
    int turns = 0;
    for (; store.is_unfinished(kManyNames); ++turns)
      CHECK_FALSE(store.go_on(kManyNames, 2, replies));
    CHECK(turns == (all ? 3 : 2));
    CHECK(replies.unsent() == 1);
    replies.sent(1);
  }
}

TEST_CASE("the waits of a connection that ends are dropped in parts, and wake no client") {
  Limits limits;
  limits.names_per_turn = 2;
  Harness store(limits);
  store.send(1, wait({"a", "b", "c", "d", "e"}));
  store.send(2, wait({"e"}));
  store.store.on_disconnect(ConnectionId{1});
  CHECK(store.store.waits() == 4);  // two are dropped at once, the others later
  CHECK(store.send(3, queue_push("e", "x")).empty());
  CHECK(store.receive(2) == kReady);
  while (store.store.drop_some(1)) {
  }
  CHECK(store.store.waits() == 0);
  CHECK(store.store.names() == 1);
}

TEST_CASE("WAIT for present names is answered at once") {
  Harness store;
  CHECK(store.send(1, set("a", "1") + queue_push("q", "x") + wait({"a", "q"})) == kReady);
}

TEST_CASE("a cancelled WAIT is answered 01 and leaves the connection usable, 50 times over") {
  Harness store;
  for (int times = 0; times < 50; ++times) {
    const std::string key = "k" + std::to_string(times);
    CHECK(store.send(1, wait({key})).empty());
    CHECK(store.send(1, cancel_wait()) == kCancelled);
    CHECK(store.send(1, set(key, "v") + get(key) + wait({key})) == text("v") + kReady);
  }
  CHECK(store.store.waits() == 0);
}

TEST_CASE("every CANCEL_WAIT is answered exactly once") {
  Harness store;
  CHECK(store.send(1, cancel_wait() + cancel_wait() + cancel_wait()) == hex("01 01 01"));
  CHECK(store.send(1, set("k", "v") + wait({"k"}) + cancel_wait()) == hex("00 01"));
}

TEST_CASE("a cancelled wait is never answered") {
  Harness store;
  store.send(1, wait({"k"}));
  CHECK(store.send(1, cancel_wait()) == kCancelled);
  store.send(2, set("k", "v"));
  CHECK(store.receive(1).empty());
}

TEST_CASE("a wake-up that precedes the cancel shows as 00 01") {
  Harness store;
  store.send(1, wait({"k"}));
  store.send(2, set("k", "v"));
  CHECK(store.send(1, cancel_wait()) == hex("00 01"));
}

TEST_CASE("WAIT on five names, one present, is answered once the other four are set") {
  Harness store;
  store.send(2, set("c", ""));
  CHECK(store.send(1, wait({"a", "b", "c", "d", "e"})).empty());
  for (const char* key : {"e", "a", "d"}) {
    store.send(2, set(key, "v"));
    CHECK(store.receive(1).empty());
  }
  store.send(2, set("b", "v"));
  CHECK(store.receive(1) == kReady);
}

TEST_CASE("names present when the WAIT arrives are not checked again") {
  Harness store;
  store.send(2, set("a", "v"));
  store.send(1, wait({"a", "b"}));
  store.send(2, delete_key("a") + set("b", "v"));
  CHECK(store.receive(1) == kReady);
}

TEST_CASE("deleting a missing key does not drop its waiters") {
  Harness store;
  store.send(1, wait({"k"}));
  CHECK(store.send(2, delete_key("k")) == i64(0));
  store.send(2, set("k", "v"));
  CHECK(store.receive(1) == kReady);
}

TEST_CASE("a name listed twice in a WAIT counts once") {
  Harness store;
  store.send(1, wait({"k", "k"}));
  store.send(2, set("k", "v"));
  CHECK(store.receive(1) == kReady);
}

TEST_CASE("a queue with an element counts as present for a WAIT") {
  Harness store;
  store.send(2, queue_push("q", "x"));
  CHECK(store.send(1, wait({"q", "k"})).empty());
  store.send(2, set("k", "v"));
  CHECK(store.receive(1) == kReady);
}

TEST_CASE("each push wakes one more waiter of the queue") {
  Harness store;
  for (int client = 1; client <= 5; ++client) store.send(client, wait({"q"}));
  store.send(9, queue_push("q", "1") + queue_push("q", "2") + queue_push("q", "3"));
  CHECK(store.receive(1) + store.receive(2) + store.receive(3) == hex("00 00 00"));
  CHECK(store.receive(4).empty());
  CHECK(store.receive(5).empty());
}

TEST_CASE("a BARRIER keeps its count under the key, and later callers pass") {
  Harness store;
  for (int client = 1; client <= 3; ++client) CHECK(store.send(client, barrier("b", 4)).empty());
  CHECK(store.send(4, barrier("b", 4)) == kReady);
  for (int client = 1; client <= 3; ++client) CHECK(store.receive(client) == kReady);
  CHECK(store.send(5, get("b") + get_num_keys() + list_keys()) ==
        text("4") + i64(1) + i64(1) + text("b"));
  CHECK(store.send(5, barrier("b", 4) + get("b")) == kReady + text("5"));
}

TEST_CASE("a BARRIER of size 1, 0 or less passes at once") {
  const std::int64_t world = GENERATE(1, 0, -1);
  Harness store;
  CHECK(store.send(1, barrier("b", world)) == kReady);
}

TEST_CASE("a client that cancels a BARRIER or disconnects still counts") {
  Harness store;
  store.send(1, barrier("b", 3));
  CHECK(store.send(1, cancel_wait()) == kCancelled);
  store.send(2, barrier("b", 3));
  store.disconnect(2);
  CHECK(store.send(3, barrier("b", 3)) == kReady);
  CHECK(store.receive(1).empty());
}

TEST_CASE("a BARRIER on a non-numeric value closes the caller and keeps the value") {
  Harness store;
  store.send(1, set("b", "x") + barrier("b", 2));
  CHECK(store.reason(1) == Reason::kNotANumber);
  CHECK(store.send(2, get("b")) == text("x"));
}

TEST_CASE("a SET on a barrier's key releases its waiters") {
  Harness store;
  store.send(1, barrier("b", 2));
  store.send(2, set("b", "v"));
  CHECK(store.receive(1) == kReady);
}

TEST_CASE("the waits of a thousand disconnected clients leave nothing behind") {
  Harness store;
  for (int client = 1; client <= 1000; ++client)
    store.send(client, wait({"k", "own" + std::to_string(client)}));
  store.send(2000, wait({"k"}));
  for (int client = 1; client <= 1000; ++client) store.disconnect(client);
  CHECK(store.store.names() == 1);
  store.send(3000, set("k", "v"));
  CHECK(store.receive(2000) == kReady);
}

TEST_CASE("30,000 waits and cancels on fresh names leave nothing behind") {
  Harness store;
  store.send(1, ping(0));
  const std::size_t before = store.memory.used();
  for (int times = 0; times < 30'000; ++times) {
    store.send(1, wait({std::to_string(times)}) + cancel_wait());
  }
  CHECK(store.store.names() == 0);
  CHECK(store.memory.used() == before);
}

TEST_CASE("a second WAIT while one is pending closes the connection") {
  Harness store;
  store.send(1, wait({"a"}));
  store.send(1, wait({"b"}));
  CHECK(store.reason(1) == Reason::kBusyWaiting);
}

TEST_CASE("other requests are served while a WAIT is pending") {
  Harness store;
  store.send(1, wait({"a"}));
  CHECK(store.send(1, ping(5)) == u32(5));
  CHECK(store.send(1, set("a", "v")) == kReady);
}

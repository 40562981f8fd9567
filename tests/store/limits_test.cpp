// The total limits of a store: one test at each limit, one beyond it. Limits of a request are in
// wire_test.cpp.
#include "tests/store/harness.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun::store;
using namespace ddprun::store::requests;

TEST_CASE("a full store refuses requests that add to it and keeps serving") {
  Limits limits;
  limits.store_bytes = 64 * kMiB;
  Harness store(limits);
  const std::string value(4 << 20, 'v');
  int refused = 0;
  for (int at = 0; at < 60; ++at) {
    const int client = 100 + at;
    store.send(client, set("k" + std::to_string(at), value));
    refused += store.refusal(client).empty() ? 0 : 1;
    CHECK(store.memory.used() <= limits.store_bytes);
  }
  CHECK(refused == 60 - 15);
  CHECK(store.reason(159) == Reason::kStoreFull);
  CHECK_THAT(store.refusal(159), ContainsSubstring("more than store_bytes = 67108864"));
  CHECK(store.send(1, get_num_keys() + delete_key("k0")) == i64(15) + i64(1));
  store.send(2, set("again", value));
  CHECK(store.refusal(2).empty());
}

TEST_CASE("queue elements are charged more than their bytes, even when empty") {
  Limits limits;
  limits.store_bytes = 1 * kMiB;
  Harness store(limits);
  std::int64_t pushed = 0;
  while (store.send(1, queue_push("q", "") + ping(1)) == u32(1)) ++pushed;
  CHECK(store.reason(1) == Reason::kStoreFull);
  CHECK(pushed < 1024 * 1024 / 56);  // what each takes of the system's memory
  std::string elements;
  for (std::int64_t left = pushed; left > 0; --left) elements += i64(left) + text("");
  std::string pops;
  for (std::int64_t left = pushed; left > 0; --left) pops += queue_pop("q");
  CHECK(store.send(2, pops) == elements);
  CHECK(store.store.names() == 0);
  store.disconnect(1);
  store.disconnect(2);
  CHECK(store.memory.used() == 0);
}

TEST_CASE("keys, queues and awaited names share the keys limit") {
  Limits limits;
  limits.keys = 3;
  Harness store(limits);
  store.send(1, set("a", "") + queue_push("q", ""));
  store.send(2, wait({"w"}));
  CHECK(store.send(1, add("a", 0)).empty());  // not a number: closed, but not because of the limit
  store.send(3, set("b", ""));
  CHECK(store.reason(3) == Reason::kTooManyStoredKeys);
  store.send(4, set("a", "replaced"));
  CHECK(store.refusal(4).empty());
}

TEST_CASE("a MULTI_SET that does not fit changes nothing") {
  Limits limits;
  limits.keys = 3;
  Harness store(limits);
  store.send(1, set("a", "old"));
  store.send(2, multi_set({{"a", "new"}, {"b", ""}, {"c", ""}, {"d", ""}}));
  CHECK(store.reason(2) == Reason::kTooManyStoredKeys);
  CHECK(store.send(1, get("a") + get_num_keys()) == text("old") + i64(1));
  CHECK(store.store.names() == 1);
}

TEST_CASE("waits beyond the limit are refused and leave nothing behind") {
  Limits limits;
  limits.waits = 2;
  Harness store(limits);
  CHECK(store.send(1, wait({"a", "b"})).empty());
  CHECK(store.refusal(1).empty());
  store.send(2, wait({"c", "c"}));
  CHECK(store.reason(2) == Reason::kTooManyWaits);
  store.send(3, barrier("d", 2));
  CHECK(store.reason(3) == Reason::kTooManyWaits);
  CHECK(store.store.names() == 2);
  CHECK(store.store.waits() == 2);
}

TEST_CASE("a reply larger than reply_bytes is refused before it is built") {
  Limits limits;
  limits.reply_bytes = 1000;
  Harness store(limits);
  Pairs pairs;
  for (int at = 0; at < 100; ++at) pairs.emplace_back("key" + std::to_string(at), "value");
  store.send(1, multi_set(pairs));
  CHECK(store.send(2, list_keys()).empty());
  CHECK(store.reason(2) == Reason::kTooManyReplies);
  CHECK(store.send(3, multi_get(Keys(100, "key1"))).empty());
  CHECK(store.reason(3) == Reason::kTooManyReplies);
  CHECK(store.send(4, multi_get(Keys(70, "key1"))).size() == 70 * 13);
  CHECK(store.send(5, compare_set("missing", std::string(1001, 'e'), "")).empty());
  CHECK(store.reason(5) == Reason::kTooManyReplies);
  CHECK(store.send(6, compare_set("missing", "e", "")) == text("e"));
}

TEST_CASE("large values in replies are shared, so a reply of 64 MiB needs almost no memory") {
  Limits limits;
  limits.reply_bytes = 64 * kKiB;
  limits.store_bytes = 2 * kMiB;
  Harness store(limits);
  store.send(1, set("k", std::string(1 << 20, 'v')));
  CHECK(store.send(1, multi_get(Keys(64, "k"))).size() == 64 * ((1 << 20) + 8));
}

TEST_CASE("a refusal names the command, the number and the limit") {
  Refusal refusal(Reason::kTooManyKeys, 131'073);
  refusal.op = Opcode::kMultiSet;
  CHECK(to_text(refusal, Limits()) ==
        "MULTI_SET: key count 131073, more than keys_per_request = 131072");
}

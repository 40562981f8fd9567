// One test per rule of rendezvous/store/waits.hpp.
#include "rendezvous/store/waits.hpp"

#include "tests/store/harness.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun::store;
using namespace ddprun::store::requests;

namespace {

constexpr int kWaiter = 1;
constexpr int kOther = 2;
const std::string kWoken = hex("00");

}  // namespace

TEST_CASE("SET wakes all waiters of the key") {
  Harness store;
  for (int client = 10; client < 15; ++client) CHECK(store.send(client, wait({"k"})).empty());
  store.send(kOther, set("k", "v"));
  for (int client = 10; client < 15; ++client) CHECK(store.receive(client) == kWoken);
}

TEST_CASE("ADD wakes a waiter of the key") {
  Harness store;
  store.send(kWaiter, wait({"k"}));
  store.send(kOther, add("k", 0));
  CHECK(store.receive(kWaiter) == kWoken);
}

TEST_CASE("APPEND wakes a waiter of the key, even with zero bytes") {
  Harness store;
  store.send(kWaiter, wait({"k"}));
  store.send(kOther, append("k", ""));
  CHECK(store.receive(kWaiter) == kWoken);
}

TEST_CASE("MULTI_SET wakes the waiters of every key it sets") {
  Harness store;
  store.send(kWaiter, wait({"a"}));
  store.send(3, wait({"b", "a"}));
  store.send(kOther, multi_set({{"a", "1"}, {"b", "2"}}));
  CHECK(store.receive(kWaiter) == kWoken);
  CHECK(store.receive(3) == kWoken);
}

TEST_CASE("a COMPARE_SET that creates the key wakes its waiters") {
  Harness store;
  store.send(kWaiter, wait({"k"}));
  store.send(kOther, compare_set("k", "", "v"));
  CHECK(store.receive(kWaiter) == kWoken);
}

TEST_CASE("a failed COMPARE_SET on a missing key wakes no waiter") {
  Harness store;
  store.send(kWaiter, wait({"k"}));
  store.send(kOther, compare_set("k", "old", "new"));
  CHECK(store.receive(kWaiter).empty());
}

TEST_CASE("QUEUE_PUSH wakes the longest waiter only") {
  Harness store;
  for (int client = 10; client < 15; ++client) store.send(client, wait({"q"}));
  store.send(kOther, queue_push("q", "x"));
  CHECK(store.receive(10) == kWoken);
  for (int client = 11; client < 15; ++client) CHECK(store.receive(client).empty());
}

TEST_CASE("a BARRIER wakes no waiter before its last caller arrives") {
  Harness store;
  CHECK(store.send(1, barrier("b", 3)).empty());
  CHECK(store.send(2, barrier("b", 3)).empty());
  CHECK(store.receive(1).empty());
}

TEST_CASE("the last caller of a BARRIER wakes all others") {
  Harness store;
  for (int client = 1; client < 4; ++client) store.send(client, barrier("b", 4));
  CHECK(store.send(4, barrier("b", 4)) == kWoken);
  for (int client = 1; client < 4; ++client) CHECK(store.receive(client) == kWoken);
}

TEST_CASE("a deletion wakes no waiter") {
  Harness store;
  store.send(kOther, add("b", 0));
  store.send(kWaiter, barrier("b", 2));
  store.send(kOther, delete_key("b"));
  CHECK(store.receive(kWaiter).empty());
}

TEST_CASE("reading a key wakes no waiter") {
  Harness store;
  store.send(kWaiter, wait({"k"}));
  store.send(kOther, get("k") + check({"k"}) + multi_get({"k"}) + queue_pop("k") + queue_len("k"));
  CHECK(store.receive(kWaiter).empty());
}

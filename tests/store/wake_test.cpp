// One test per sentence of rendezvous/store/wake.hpp.
#include "rendezvous/store/wake.hpp"

#include "tests/store/harness.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun::store;
using namespace ddprun::store::requests;

namespace {

constexpr int kWaiter = 1;
constexpr int kOther = 2;
const std::string kWoken = hex("00");

}  // namespace

TEST_CASE("SET wakes all who wait for the key") {
  Harness store;
  for (int who = 10; who < 15; ++who) CHECK(store.send(who, wait({"k"})).empty());
  store.send(kOther, set("k", "v"));
  for (int who = 10; who < 15; ++who) CHECK(store.receive(who) == kWoken);
}

TEST_CASE("ADD wakes who waits for the key") {
  Harness store;
  store.send(kWaiter, wait({"k"}));
  store.send(kOther, add("k", 0));
  CHECK(store.receive(kWaiter) == kWoken);
}

TEST_CASE("APPEND wakes who waits for the key, with zero bytes too") {
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

TEST_CASE("a COMPARE_SET that creates the key wakes who waits for it") {
  Harness store;
  store.send(kWaiter, wait({"k"}));
  store.send(kOther, compare_set("k", "", "v"));
  CHECK(store.receive(kWaiter) == kWoken);
}

TEST_CASE("a failed COMPARE_SET on a missing key wakes nobody") {
  Harness store;
  store.send(kWaiter, wait({"k"}));
  store.send(kOther, compare_set("k", "old", "new"));
  CHECK(store.receive(kWaiter).empty());
}

TEST_CASE("QUEUE_PUSH wakes one waiter, who has waited longest") {
  Harness store;
  for (int who = 10; who < 15; ++who) store.send(who, wait({"q"}));
  store.send(kOther, queue_push("q", "x"));
  CHECK(store.receive(10) == kWoken);
  for (int who = 11; who < 15; ++who) CHECK(store.receive(who).empty());
}

TEST_CASE("a BARRIER wakes nobody before its last caller") {
  Harness store;
  CHECK(store.send(1, barrier("b", 3)).empty());
  CHECK(store.send(2, barrier("b", 3)).empty());
  CHECK(store.receive(1).empty());
}

TEST_CASE("the last caller of a BARRIER wakes all the others") {
  Harness store;
  for (int who = 1; who < 4; ++who) store.send(who, barrier("b", 4));
  CHECK(store.send(4, barrier("b", 4)) == kWoken);
  for (int who = 1; who < 4; ++who) CHECK(store.receive(who) == kWoken);
}

TEST_CASE("a deletion wakes nobody") {
  Harness store;
  store.send(kOther, add("b", 0));
  store.send(kWaiter, barrier("b", 2));
  store.send(kOther, delete_key("b"));
  CHECK(store.receive(kWaiter).empty());
}

TEST_CASE("looking at a key wakes nobody") {
  Harness store;
  store.send(kWaiter, wait({"k"}));
  store.send(kOther, get("k") + check({"k"}) + multi_get({"k"}) + queue_pop("k") + queue_len("k"));
  CHECK(store.receive(kWaiter).empty());
}

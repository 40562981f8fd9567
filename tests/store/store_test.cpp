// The effect of each command on keys and values. Waking is in wake_test.cpp, waiting in
// waits_test.cpp.
#include "tests/store/harness.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun::store;
using namespace ddprun::store::requests;

TEST_CASE("ADD returns the sum and stores it as decimal text") {
  Harness store;
  CHECK(store.send(1, add("n", 1)) == i64(1));
  CHECK(store.send(1, add("n", 2)) == i64(3));
  CHECK(store.send(2, add("n", 3)) == i64(6));
  CHECK(store.send(1, get("n")) == text("6"));
  CHECK(store.send(1, add("n", -16) + get("n")) == i64(-10) + text("-10"));
}

TEST_CASE("ADD of 0 reads the value, and creates a missing key as 0") {
  Harness store;
  CHECK(store.send(1, add("n", 0) + get("n") + get_num_keys()) == i64(0) + text("0") + i64(1));
}

TEST_CASE("ADD parses text as strtoll does") {
  const auto row = GENERATE(table<std::string, std::int64_t>(
      {{"12", 12}, {" 7", 7}, {"+5", 5}, {"-5", -5}, {"12abc", 12}, {"007", 7}, {"3\n", 3}}));
  Harness store;
  CHECK(store.send(1, set("n", std::get<0>(row)) + add("n", 1)) == i64(std::get<1>(row) + 1));
}

TEST_CASE("ADD on a non-numeric value closes the caller and keeps the value") {
  const std::string value = GENERATE("x", "", "-", "+", "+-5", " ", "99999999999999999999");
  Harness store;
  CHECK(store.send(1, set("n", value) + add("n", 1)).empty());
  CHECK(store.reason(1) == Reason::kNotANumber);
  CHECK(store.send(2, get("n")) == text(value));
}

TEST_CASE("ADD reaches the limits of 64 bits exactly and refuses to overflow") {
  const auto end = GENERATE(INT64_MAX, INT64_MIN);
  const std::int64_t step = end > 0 ? 1 : -1;
  Harness store;
  CHECK(store.send(1, add("n", end - step) + add("n", step)) == i64(end - step) + i64(end));
  CHECK(store.send(1, add("n", step)).empty());
  CHECK(store.reason(1) == Reason::kSumOverflows);
  CHECK(store.send(2, get("n")) == text(std::to_string(end)));
}

TEST_CASE("SET and GET preserve every byte") {
  const std::size_t size = GENERATE(as<std::size_t>(), 0, 1, 1439, 1440, 4095, 4096, 4097, 65535,
                                    65536, 65537, 1 << 20, 8 << 20);
  std::string value(size, '\0');
  for (std::size_t at = 0; at < size; ++at) value[at] = static_cast<char>(at * 131 >> 3);
  Harness store;
  CHECK(store.send(1, set("k", value)).empty());
  CHECK(store.send(2, get("k")) == text(value));
  CHECK(store.send(2, check({"k"})) == hex("00"));
  store.send(1, set("k", "short"));
  CHECK(store.send(2, get("k")) == text("short"));
}

TEST_CASE("keys are opaque bytes") {
  const Keys names{"-key",
                   "//a//0//cuda//0",
                   " ",
                   "\t",
                   std::string("\0", 1),
                   "/%2f",
                   "noslash",
                   "",
                   "/a//b",
                   "/a/b",
                   std::string(8192, 'k')};
  Harness store;
  for (const std::string& name : names) store.send(1, set(name, "value of " + name));
  for (const std::string& name : names) {
    CHECK(store.send(1, get(name)) == text("value of " + name));
  }
  CHECK(store.send(1, get_num_keys()) == i64(static_cast<std::int64_t>(names.size())));
}

TEST_CASE("GET of a missing key answers zero bytes and does not create it") {
  Harness store;
  CHECK(store.send(1, get("k") + get_num_keys() + check({"k"})) == text("") + i64(0) + hex("01"));
}

TEST_CASE("DELETE_KEY reports whether the key existed") {
  Harness store;
  CHECK(store.send(1, set("k", "v") + delete_key("k") + delete_key("k")) == i64(1) + i64(0));
  CHECK(store.send(1, get_num_keys()) == i64(0));
  CHECK(store.send(1, set("k", "w") + check({"k"}) + get_num_keys()) == hex("00") + i64(1));
}

TEST_CASE("COMPARE_SET creates a missing key only if no value was expected") {
  Harness store;
  CHECK(store.send(1, compare_set("k", "old", "new")) == text("old"));
  CHECK(store.send(1, check({"k"})) == hex("01"));
  CHECK(store.send(1, compare_set("k", "", "new")) == text("new"));
  CHECK(store.send(1, get("k")) == text("new"));
}

TEST_CASE("COMPARE_SET replaces a present key only if the expected value matches") {
  Harness store;
  store.send(1, set("k", "now"));
  CHECK(store.send(1, compare_set("k", "other", "new")) == text("now"));
  CHECK(store.send(1, compare_set("k", "", "new")) == text("now"));
  CHECK(store.send(1, compare_set("k", "now", "new")) == text("new"));
  CHECK(store.send(1, compare_set("k", "new", "")) == text(""));
  CHECK(store.send(1, compare_set("k", "", "again")) == text("again"));
}

TEST_CASE("COMPARE_SET accepts operands of 1 MiB, split anywhere") {
  const std::string old(1 << 20, 'o');
  const std::string fresh(1 << 20, 'f');
  Harness store;
  store.send(1, set("k", old));
  const std::string bytes = compare_set("k", old, fresh);
  CHECK(store.send(1, bytes.substr(0, 700'000)).empty());
  CHECK(store.send(1, bytes.substr(700'000)) == text(fresh));
}

TEST_CASE("exactly one of 64 racing COMPARE_SET calls wins") {
  Harness store;
  store.send(0, set("k", "start"));
  int winners = 0;
  for (int client = 1; client <= 64; ++client) {
    const std::string mine = std::to_string(client);
    winners += store.send(client, compare_set("k", "start", mine)) == text(mine) ? 1 : 0;
  }
  CHECK(winners == 1);
}

TEST_CASE("APPEND appends, and creates a missing key") {
  Harness store;
  store.send(1, set("k", "po") + append("k", "tato") + append("new", "x"));
  CHECK(store.send(1, get("k") + get("new")) == text("potato") + text("x"));
}

TEST_CASE("three APPENDs of 5 MiB give 15 MiB, more than one request may carry") {
  const std::string part(5 << 20, 'a');
  Harness store;
  for (int times = 0; times < 3; ++times) store.send(1, append("k", part));
  CHECK(store.send(1, get("k")) == text(part + part + part));
}

TEST_CASE("an APPEND does not change a value that is being sent") {
  const std::string value(100'000, 'v');
  Harness store;
  store.send(1, set("k", value));
  Request request;
  ReplyQueue replies(store.copied);
  request.op = Opcode::kGet;
  request.key = "k";
  REQUIRE_FALSE(store.store.step(ConnectionId{9}, request, replies));
  store.send(1, append("k", "more"));
  iovec parts[2];
  REQUIRE(replies.gather(parts) == 2);
  CHECK(parts[1].iov_len == value.size());
  CHECK(store.send(1, get("k")) == text(value + "more"));
}

TEST_CASE("MULTI_SET sets all pairs; the last value of a repeated key wins") {
  Harness store;
  store.send(1, multi_set({{"a", "1"}, {"b", "2"}, {"a", "3"}}));
  CHECK(store.send(1, multi_get({"a", "b"}) + get_num_keys()) == text("3") + text("2") + i64(2));
}

TEST_CASE("MULTI_GET replies in request order, including repeated and missing keys") {
  Harness store;
  store.send(1, set("a", "1"));
  CHECK(store.send(1, multi_get({"a", "none", "a"})) == text("1") + text("") + text("1"));
  CHECK(store.send(1, get_num_keys()) == i64(1));
}

TEST_CASE("MULTI_GET of 64 values of 1 MiB is one reply") {
  const std::string value(1 << 20, 'm');
  Harness store;
  store.send(1, set("k", value));
  const std::string reply = store.send(1, multi_get(Keys(64, "k")));
  CHECK(reply.size() == 64 * (value.size() + 8));
}

TEST_CASE("empty lists keep the stream in sync") {
  Harness store;
  CHECK(store.send(1, multi_get({}) + multi_set({}) + check({}) + wait({}) + ping(7)) ==
        hex("00 00") + u32(7));
}

TEST_CASE("an unknown queue is empty and not present") {
  Harness store;
  CHECK(store.send(1, check({"q"}) + queue_len("q") + queue_pop("q") + ping(1)) ==
        hex("01") + i64(0) + i64(0) + u32(1));
}

TEST_CASE("a queue is first in, first out, and QUEUE_POP returns the length before the pop") {
  const std::string big(1 << 20, 'q');
  Harness store;
  store.send(1, queue_push("q", "first") + queue_push("q", "") + queue_push("q", big));
  CHECK(store.send(2, check({"q"}) + queue_len("q") + wait({"q"})) ==
        hex("00") + i64(3) + hex("00"));
  CHECK(store.send(2, queue_pop("q")) == i64(3) + text("first"));
  CHECK(store.send(2, queue_pop("q")) == i64(2) + text(""));
  CHECK(store.send(2, queue_pop("q")) == i64(1) + text(big));
  CHECK(store.send(2, check({"q"}) + queue_len("q")) == hex("01") + i64(0));
}

TEST_CASE("a key and a queue of the same name are independent") {
  Harness store;
  store.send(1, set("n", "value") + queue_push("n", "element"));
  CHECK(store.send(1, get_num_keys() + list_keys()) == i64(1) + i64(1) + text("n"));
  CHECK(store.send(1, delete_key("n") + get("n") + queue_len("n")) == i64(1) + text("") + i64(1));
  CHECK(store.send(1, delete_key("n")) == i64(0));
  CHECK(store.send(1, queue_pop("n")) == i64(1) + text("element"));
  CHECK(store.store.names() == 0);
}

TEST_CASE("LIST_KEYS lists the plain keys unchanged") {
  Harness store;
  Pairs pairs;
  for (int at = 0; at < 20'000; ++at) pairs.emplace_back("/key" + std::to_string(at), "v");
  store.send(1, multi_set(pairs) + add("init/", 1));
  const std::string reply = store.send(1, list_keys());
  CHECK(reply.substr(0, 8) == i64(20'001));
  CHECK(reply.find(text("init/")) != std::string::npos);
  CHECK(reply.find(text("/key19999")) != std::string::npos);
}

TEST_CASE("an emptied store holds no memory") {
  Harness store;
  store.send(1, set("a", std::string(1 << 20, 'x')) + append("b", "y") + queue_push("q", "z"));
  store.send(2, wait({"missing", "also missing"}));
  store.send(3, barrier("c", 2));
  CHECK(store.memory.used() > 1 << 20);
  store.send(1, delete_key("a") + delete_key("b") + delete_key("c") + queue_pop("q"));
  store.disconnect(2);
  store.disconnect(3);
  store.disconnect(1);
  CHECK(store.store.names() == 0);
  CHECK(store.memory.used() == 0);
  CHECK(store.copied.used() == 0);
}

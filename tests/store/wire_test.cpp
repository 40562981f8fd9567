// Parsing: the protocol's byte examples, every possible split, and the limits.
#include "rendezvous/store/wire.hpp"

#include "tests/store/harness.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun::store;
using namespace ddprun::store::requests;

namespace {

struct Exchange {
  std::string request;
  std::string reply;
};

// A conversation with every command; each reply is available at once.
std::vector<Exchange> conversation() {
  return {
      {validate() + ping(4242), u32(4242)},
      {add("init/", 1), i64(1)},
      {set("/k", "v1"), ""},
      {wait({"/k"}), hex("00")},
      {get("/k"), text("v1")},
      {check({"/k", "/none"}), hex("01")},
      {compare_set("/k", "v1", "v2"), text("v2")},
      {append("/k", "+"), ""},
      {multi_set({{"/a", "1"}, {"/b", ""}, {"/c", "333"}}), ""},
      {multi_get({"/a", "/b", "/c", "/k"}), text("1") + text("") + text("333") + text("v2+")},
      {get_num_keys(), i64(5)},
      {delete_key("/k"), i64(1)},
      {queue_push("/q", "x"), ""},
      {queue_len("/q"), i64(1)},
      {queue_pop("/q"), i64(1) + text("x")},
      {queue_pop("/q"), i64(0)},
      {multi_set({}), ""},
      {barrier("/bar", 1), hex("00")},
      {cancel_wait(), hex("01")},
      {delete_key("/a") + delete_key("/b") + delete_key("/c") + delete_key("init/"),
       i64(1) + i64(1) + i64(1) + i64(1)},
      {list_keys(), i64(1) + text("/bar")},
      {delete_key("/bar"), i64(1)},
      {ping(0xffffffff), u32(0xffffffff)},
  };
}

std::string all_requests() {
  std::string bytes;
  for (const Exchange& exchange : conversation()) bytes += exchange.request;
  return bytes;
}

std::string all_replies() {
  std::string bytes;
  for (const Exchange& exchange : conversation()) bytes += exchange.reply;
  return bytes;
}

}  // namespace

TEST_CASE("the protocol's examples get exactly the documented replies") {
  Harness store;
  CHECK(store.send_raw(1, hex("00 ce f7 85 3c 0d 92 10 00 00")) == hex("92 10 00 00"));
  CHECK(
      store.send_raw(1, hex("04 05 00 00 00 00 00 00 00 69 6e 69 74 2f 01 00 00 00 00 00 00 00")) ==
      hex("01 00 00 00 00 00 00 00"));
  CHECK(store.send_raw(1, hex("01 02 00 00 00 00 00 00 00 2f 6b 02 00 00 00 00 00 00 00 76 31")) ==
        "");
  CHECK(store.send_raw(1, hex("06 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 2f 6b")) ==
        hex("00"));
  CHECK(store.send_raw(1, hex("03 02 00 00 00 00 00 00 00 2f 6b")) ==
        hex("02 00 00 00 00 00 00 00 76 31"));
  CHECK(store.send_raw(1, hex("08 02 00 00 00 00 00 00 00 2f 6b")) ==
        hex("01 00 00 00 00 00 00 00"));
  CHECK(store.send_raw(1, hex("02 02 00 00 00 00 00 00 00 2f 6b 00 00 00 00 00 00 00 00"
                              "01 00 00 00 00 00 00 00 61")) == hex("01 00 00 00 00 00 00 00 61"));
  store.send_raw(1, queue_push("/q", "x"));
  CHECK(store.send_raw(1, hex("0f 02 00 00 00 00 00 00 00 2f 71")) ==
        hex("01 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 78"));
  CHECK(store.send_raw(1, hex("0f 02 00 00 00 00 00 00 00 2f 71")) ==
        hex("00 00 00 00 00 00 00 00"));
  const std::string four = hex("12 02 00 00 00 00 00 00 00 2f 62 04 00 00 00 00 00 00 00");
  for (int client = 2; client <= 4; ++client) CHECK(store.send(client, four).empty());
  CHECK(store.send_raw(1, four) == hex("00"));
  CHECK(store.send_raw(1, hex("0c")) == hex("01"));
}

TEST_CASE("the legacy example gets exactly the documented reply") {
  Harness store;
  CHECK(
      store.send_raw(1, hex("03 05 00 00 00 00 00 00 00 69 6e 69 74 2f 01 00 00 00 00 00 00 00")) ==
      hex("01 00 00 00 00 00 00 00"));
}

TEST_CASE("requests split at any byte get the same replies") {
  const std::string bytes = all_requests();
  const std::string expected = all_replies();
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
    Harness store;
    std::string replies = store.send_raw(1, bytes.substr(0, cut));
    replies += store.send_raw(1, bytes.substr(cut));
    if (replies != expected) FAIL("cut at byte " << cut);
  }
}

TEST_CASE("requests sent byte by byte, or 20 conversations at once, are answered in order") {
  const std::string bytes = all_requests();
  Harness store;
  std::string replies;
  for (const char one : bytes) replies += store.send_raw(1, {&one, 1});
  CHECK(replies == all_replies());
  std::string rounds;
  std::string expected;
  for (int round = 0; round < 20; ++round) {
    rounds += bytes;
    expected += all_replies();
  }
  CHECK(store.send_raw(1, rounds) == expected);
}

TEST_CASE("legacy commands have their own opcodes and the modern fields and replies") {
  Harness store;
  CHECK(store.send_raw(1, byte(0) + text("/k") + text("v")).empty());
  CHECK(store.send_raw(1, byte(2) + text("/k")) == text("v"));
  CHECK(store.send_raw(1, byte(3) + text("n") + i64(2)) == i64(2));
  CHECK(store.send_raw(1, byte(4) + keys({"/k"})) == hex("00"));
  CHECK(store.send_raw(1, byte(5) + keys({"/k"})) == hex("00"));
  CHECK(store.send_raw(1, byte(1) + text("/no") + text("old") + text("new")) == text("old"));
  CHECK(store.send_raw(1, byte(1) + text("/k") + text("v") + text("w")) == text("w"));
  CHECK(store.send_raw(1, byte(6)) == i64(2));
  CHECK(store.send_raw(1, byte(7) + text("/k")) == hex("03"));
  CHECK(store.send_raw(1, byte(8) + text("/k")) == i64(1));
  CHECK(store.send(2, get("n")) == text("2"));
}

TEST_CASE("a legacy SET as the first request is distinguished from VALIDATE, split anywhere") {
  const std::string bytes = byte(0) + text("/key") + text("value");
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
    Harness store;
    store.send_raw(1, bytes.substr(0, cut));
    store.send_raw(1, bytes.substr(cut));
    if (store.send(2, get("/key")) != text("value")) FAIL("cut at byte " << cut);
  }
}

TEST_CASE("a legacy connection that sends a request while its WAIT is pending is closed") {
  Harness store;
  CHECK(store.send_raw(1, byte(5) + keys({"k"})).empty());
  CHECK(store.send_raw(1, byte(6)).empty());
  CHECK(store.reason(1) == Reason::kBusyWaiting);
}

TEST_CASE("VALIDATE may arrive in pieces, without PING, and repeatedly") {
  Harness store;
  for (const char one : validate()) CHECK(store.send_raw(1, {&one, 1}).empty());
  CHECK(store.send_raw(1, add("n", 1)) == i64(1));
  CHECK(store.send_raw(1, validate() + ping(3)) == u32(3));
  CHECK(store.refusal(1).empty());
}

TEST_CASE("first bytes that match no dialect are refused without a reply") {
  const std::string bytes = GENERATE(
      std::string("GET / HTTP/1.1\r\n\r\n"), std::string("\r\n\r\n"), std::string("SSH-2.0-x\r\n"),
      hex("16 03 01 02 00 01 00 01 fc 03 03"), hex("03 00 00 13 0e e0 00 00 00 00 00"),
      hex("00 00 00 85 ff 53 4d 42"), std::string(64, '\xff'), std::string(64, '\0'),
      hex("00 cf f7 85 3c"), hex("00 01 20 00 00"), hex("ce f7 85 3c"), hex("44 44 50 52"),
      hex("03 00 00 00 00 00 00 00 40 69"), hex("09 00"), hex("00 05 00 00 00 01 00 00 00"));
  Harness store;
  CHECK(store.send_raw(1, bytes).empty());
  CHECK_FALSE(store.refusal(1).empty());
  CHECK(store.store.names() == 0);
}

TEST_CASE("a modern MULTI_SET as the first message is not executed") {
  Harness store;
  CHECK(store.send_raw(1, multi_set({{"k", "v"}}) + ping(1)).empty());
  CHECK_FALSE(store.refusal(1).empty());
  CHECK(store.store.names() == 0);
}

TEST_CASE("opcodes 19 to 255 are refused, in the legacy dialect 9 to 255") {
  const int code = GENERATE(range(19, 256));
  Harness store;
  CHECK(store.send(1, byte(code)).empty());
  CHECK(store.refusal(1) == "unknown opcode " + std::to_string(code));
  CHECK(store.send_raw(2, byte(6)) == i64(0));
  CHECK(store.send_raw(2, byte(code % 247 + 9)).empty());
  CHECK_FALSE(store.refusal(2).empty());
}

TEST_CASE("PING echoes any number") {
  const std::uint32_t nonce = GENERATE(0U, 1U, 0x7fffffffU, 0x80000000U, 0xffffffffU);
  Harness store;
  std::string many;
  std::string expected;
  for (int times = 0; times < 1000; ++times) {
    many += ping(nonce);
    expected += u32(nonce);
  }
  CHECK(store.send(1, many) == expected);
}

TEST_CASE("a key of 8192 bytes is accepted and one of 8193 refused, in every command with a key") {
  const auto make = GENERATE(
      +[](const std::string& key) { return set(key, "v"); },
      +[](const std::string& key) { return get(key); },
      +[](const std::string& key) { return add(key, 1); },
      +[](const std::string& key) { return compare_set(key, "", "v"); },
      +[](const std::string& key) { return check({key}); },
      +[](const std::string& key) {
        return wait({"a", key});
      },
      +[](const std::string& key) { return delete_key(key); },
      +[](const std::string& key) { return append(key, "v"); },
      +[](const std::string& key) { return multi_get({key}); },
      +[](const std::string& key) {
        return multi_set({{key, "v"}});
      },
      +[](const std::string& key) { return queue_push(key, "v"); },
      +[](const std::string& key) { return queue_pop(key); },
      +[](const std::string& key) { return queue_len(key); },
      +[](const std::string& key) { return barrier(key, 1); });
  Harness store;
  store.send(1, make(std::string(8192, 'k')));
  CHECK(store.refusal(1).empty());
  CHECK(store.send(2, make(std::string(8193, 'k'))).empty());
  CHECK(store.reason(2) == Reason::kKeyTooLong);
  CHECK_THAT(store.refusal(2), ContainsSubstring("key length 8193, more than key_bytes = 8192"));
}

TEST_CASE("a value one byte too long is refused as soon as its length is known") {
  const std::uint64_t length =
      GENERATE(std::uint64_t{8'388'609}, std::uint64_t{1} << 31, (std::uint64_t{1} << 32) + 1,
               std::uint64_t{1} << 62, std::uint64_t{1} << 63, ~std::uint64_t{0});
  const std::string head = GENERATE(
      op(Opcode::kSet) + text("k"), op(Opcode::kAppend) + text("k"),
      op(Opcode::kCompareSet) + text("k"), op(Opcode::kCompareSet) + text("k") + text("expected"),
      op(Opcode::kMultiSet) + u64(1) + text("k"), op(Opcode::kQueuePush) + text("k"));
  Harness store;
  CHECK(store.send(1, head + u64(length)).empty());
  CHECK(store.reason(1) == Reason::kValueTooLong);
  CHECK_THAT(store.refusal(1), ContainsSubstring("more than value_bytes = 8388608"));
  CHECK(store.memory.used() == 0);
  CHECK(store.store.names() == 0);
}

TEST_CASE("a count beyond 131,072 keys is refused as soon as it is known") {
  const std::uint64_t count =
      GENERATE(std::uint64_t{131'073}, std::uint64_t{1} << 62, ~std::uint64_t{0});
  const Opcode code = GENERATE(Opcode::kCheck, Opcode::kWait, Opcode::kMultiGet, Opcode::kMultiSet);
  Harness store;
  CHECK(store.send(1, op(code) + u64(count)).empty());
  CHECK(store.reason(1) == Reason::kTooManyKeys);
}

TEST_CASE("131,072 keys in one request work in every command with a list") {
  Keys names;
  Pairs pairs;
  for (int at = 0; at < 131'072; ++at) {
    names.push_back("key" + std::to_string(at));
    pairs.emplace_back(names.back(), "v");
  }
  Harness store;
  CHECK(store.send(2, wait(names)).empty());
  CHECK(store.send(1, check(names)) == hex("01"));
  store.send(1, multi_set(pairs));
  CHECK(store.receive(2) == hex("00"));
  CHECK(store.send(1, check(names)) == hex("00"));
  CHECK(store.send(1, multi_get(names)).size() == 131'072 * 9);
}

TEST_CASE("a MULTI_SET has no effect before its last byte and the whole effect after it") {
  Harness store;
  store.send(1, set("a", "old"));
  const std::string bytes = multi_set({{"a", "new"}, {"b", "new"}});
  for (std::size_t at = 0; at + 1 < bytes.size(); ++at) {
    store.send(2, bytes.substr(at, 1));
    if (at == bytes.size() / 2) store.send(1, set("b", "meanwhile"));
  }
  CHECK(store.send(1, multi_get({"a", "b"})) == text("old") + text("meanwhile"));
  store.send(2, bytes.substr(bytes.size() - 1));
  CHECK(store.send(1, multi_get({"a", "b"})) == text("new") + text("new"));
}

TEST_CASE("an endless request stays within request_bytes and store_bytes") {
  Limits limits;
  limits.request_bytes = 1000;
  Harness store(limits);
  const std::string part = text("k") + text(std::string(300, 'v'));
  store.send(1, op(Opcode::kMultiSet) + u64(100) + part + part + part + part);
  CHECK(store.reason(1) == Reason::kRequestTooLong);
  limits = Limits();
  limits.store_bytes = 1 << 20;
  Harness small(limits);
  small.send(1, set("k", std::string(100, 'v')));
  small.send(2, op(Opcode::kSet) + text("big") + u64(4 << 20) + std::string(2 << 20, 'v'));
  CHECK(small.reason(2) == Reason::kStoreFull);
  CHECK(small.send(1, get("k")) == text(std::string(100, 'v')));
}

#include "rendezvous/store/value.hpp"

#include "rendezvous/store/replies.hpp"
#include "rendezvous/store/request.hpp"
#include "tests/support/catch.hpp"

using ddprun::Budget;
using namespace ddprun::store;

TEST_CASE("a value's memory is charged while it is referenced") {
  Memory budget(1 << 20);
  Value one = Value::copy_of("text", budget);
  CHECK(one.view() == "text");
  CHECK(budget.used() > 4);
  Value two = one;
  one = Value();
  CHECK(two.view() == "text");
  two = Value();
  CHECK(budget.used() == 0);
}

TEST_CASE("an empty value differs from a null value") {
  Memory budget(1000);
  CHECK(Value::copy_of("", budget));
  CHECK_FALSE(Value());
}

TEST_CASE("a value beyond the budget is refused and the old value stays") {
  Memory budget(1000);
  Value value = Value::copy_of("old", budget);
  const std::string large(2000, 'x');
  CHECK_FALSE(Value::copy_of(large, budget));
  CHECK_FALSE(value.assign(large, budget));
  CHECK_FALSE(value.append(large, budget));
  CHECK(value.view() == "old");
}

TEST_CASE("assigning to a shared value does not change the other reference") {
  Memory budget(10'000);
  Value mine = Value::copy_of("first", budget);
  const Value theirs = mine;
  CHECK(mine.assign("other", budget));
  CHECK(theirs.view() == "first");
  CHECK(mine.view() == "other");
}

TEST_CASE("a million appended bytes stay in order across all kinds of blocks") {
  Memory budget(8 << 20);
  Value value;
  std::string expected;
  for (int at = 0; at < 100'000; ++at) {
    const std::string part = std::to_string(at % 10'000'000 + 10'000'000).substr(0, 8);
    REQUIRE(value.append(part, budget));
    expected += part;
  }
  CHECK(value.view() == expected);
  value = Value();
  CHECK(budget.used() == 0);
}

TEST_CASE("a received value grows with the bytes that arrive, not with the announced length") {
  constexpr std::size_t kAnnounced = 8 << 20;
  Memory budget(64 << 20);
  Value value;
  std::size_t filled = 0;
  while (filled < kAnnounced) {
    const auto room = value.writable(kAnnounced, budget);
    REQUIRE_FALSE(room.empty());
    CHECK(budget.used() <= 2 * filled + (128 << 10));
    for (char& byte : room) byte = static_cast<char>(filled++ * 7 >> 5);
    value.written(room.size());
  }
  CHECK(filled == kAnnounced);
  bool same = true;
  for (std::size_t at = 0; at < kAnnounced; ++at) {
    same = same && value.view()[at] == static_cast<char>(at * 7 >> 5);
  }
  CHECK(same);
}

TEST_CASE("replies are sent in order however few bytes the socket accepts at a time") {
  const std::size_t step =
      GENERATE(std::size_t{1}, std::size_t{7}, std::size_t{4096}, ~std::size_t{0});
  Budget copied(1 << 20);
  Memory memory(1 << 20);
  ReplyQueue replies(copied);
  const std::string large(5000, 'L');
  const Value shared = Value::copy_of(large, memory);
  std::string expected;
  for (int round = 0; round < 20; ++round) {
    replies.put_u8(1);
    replies.put_value(shared);
    replies.put_value(shared);
    replies.put_bytes("small");
    const std::string length("\x88\x13\0\0\0\0\0\0", 8);
    expected += "\x01" + length + large + length + large + std::string("\5\0\0\0\0\0\0\0small", 13);
  }
  std::string sent;
  while (!replies.empty()) {
    iovec parts[3];
    const std::size_t count = replies.gather(parts);
    REQUIRE(count > 0);
    std::size_t taken = 0;
    for (std::size_t at = 0; at < count && taken < step; ++at) {
      const std::size_t bytes = std::min(parts[at].iov_len, step - taken);
      sent.append(static_cast<const char*>(parts[at].iov_base), bytes);
      taken += bytes;
    }
    replies.sent(taken);
  }
  CHECK(sent == expected);
  CHECK(copied.used() == 0);
}

TEST_CASE("sent text is freed although the queue never becomes empty") {
  Budget copied(64 << 20);
  ReplyQueue replies(copied);
  const std::string part(1000, 'p');
  for (int at = 0; at < 20'000; ++at) {
    replies.put_bytes(part);
    if (at > 10) replies.sent(1008);
  }
  CHECK(copied.used() < (256 << 10));
}

TEST_CASE("an idle connection keeps capacity for one small reply only") {
  Budget copied(64 << 20);
  Memory memory(64 << 20);
  ReplyQueue replies(copied);
  const Value shared = Value::copy_of(std::string(5000, 'L'), memory);
  for (int at = 0; at < 1000; ++at) replies.put_value(shared);
  replies.put_bytes(std::string(1 << 20, 's'));
  CHECK(replies.memory() > (1 << 20));
  replies.sent(replies.unsent() - 10);
  CHECK(replies.memory() < (64 << 10));
  replies.sent(10);
  CHECK(replies.memory() <= 256);
  replies.put_bytes(std::string(1 << 20, 's'));
  replies.sent(replies.unsent());
  CHECK(replies.memory() <= 256);
}

TEST_CASE("a freed list of keys keeps no capacity") {
  KeyList keys;
  for (int at = 0; at < 10'000; ++at) {
    keys.add("key");
    keys.end_key();
  }
  CHECK(keys.memory() > 10'000);
  keys.free();
  CHECK(keys.size() == 0);
  CHECK(keys.memory() < 64);
}

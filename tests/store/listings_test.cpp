// A list of keys that is told in parts is the list of one moment.
#include "rendezvous/store/replies.hpp"

#include <deque>

#include "tests/store/requests.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::store;
using namespace ddprun::store::requests;

namespace {

constexpr ConnectionId kClient{1};

/// Keys with the names 0, 1, 2 ...
struct Keys10 {
  Keys10() {
    for (int at = 0; at < 10; ++at) add(at);
  }
  Listed& add(int at) {
    names.push_back(std::to_string(at));
    Listed& key = keys.emplace_back();
    key.name = &names.back();
    listings.add(key);
    return key;
  }
  std::string said() {
    std::string bytes;
    iovec parts[4];
    while (!replies.empty()) {
      std::size_t sum = 0;
      const std::size_t count = replies.gather(parts);
      for (std::size_t at = 0; at < count; ++at) {
        bytes.append(static_cast<const char*>(parts[at].iov_base), parts[at].iov_len);
        sum += parts[at].iov_len;
      }
      replies.sent(sum);
    }
    return bytes;
  }

  std::deque<std::string> names;
  std::deque<Listed> keys;
  Listings listings;
  Budget copied{1 << 20};
  ReplyQueue replies{copied};
};

std::string all(std::initializer_list<int> numbers) {
  std::string bytes;
  for (const int number : numbers) bytes += text(std::to_string(number));
  return bytes;
}

}  // namespace

TEST_CASE("a list is told in parts, with its length first") {
  Keys10 store;
  store.listings.begin(kClient, store.replies);
  CHECK(store.said() == i64(10));
  CHECK(store.listings.more(kClient, 4));
  CHECK(store.said() == all({0, 1, 2, 3}));
  CHECK(store.listings.more(kClient, 5));
  CHECK(store.said() == all({4, 5, 6, 7, 8}));
  CHECK_FALSE(store.listings.more(kClient, 1));
  CHECK(store.said() == all({9}));
  CHECK_FALSE(store.listings.more(kClient, 1));
}

TEST_CASE("what becomes a key while a list is told is not in it, what is deleted is") {
  Keys10 store;
  store.listings.begin(kClient, store.replies);
  CHECK(store.listings.more(kClient, 3));
  store.listings.remove(store.keys[1]);  // was told
  store.listings.remove(store.keys[3]);  // is next
  store.listings.remove(store.keys[9]);  // is last
  store.add(10);
  store.listings.add(store.keys[1]);  // again
  CHECK_FALSE(store.listings.more(kClient, 100));
  CHECK(store.said() == i64(10) + all({0, 1, 2, 3, 9, 4, 5, 6, 7, 8}));
  store.listings.begin(kClient, store.replies);
  CHECK_FALSE(store.listings.more(kClient, 100));
  CHECK(store.said() == i64(9) + all({0, 2, 4, 5, 6, 7, 8, 10, 1}));
}

TEST_CASE("a list whose last keys are deleted ends, and one of a closed connection is forgotten") {
  Keys10 store;
  store.listings.begin(kClient, store.replies);
  CHECK(store.listings.more(kClient, 9));
  store.listings.remove(store.keys[9]);
  CHECK_FALSE(store.listings.more(kClient, 1));
  CHECK(store.said() == i64(10) + all({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  store.listings.begin(kClient, store.replies);
  store.listings.drop(kClient);
  for (int at = 0; at < 9; ++at) store.listings.remove(store.keys[static_cast<std::size_t>(at)]);
  CHECK(store.said() == i64(9));
  store.listings.begin(kClient, store.replies);
  CHECK_FALSE(store.listings.more(kClient, 1));
  CHECK(store.said() == i64(0));
  CHECK(store.listings.name_bytes() == 0);
}

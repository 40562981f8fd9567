// Generated inputs of the fuzz target with fixed seeds; tests/fuzz replays its corpus.
#include <random>
#include <vector>

#include "tests/store/replay.hpp"
#include "tests/store/requests.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun::store;
using namespace ddprun::store::requests;

namespace {

using Bytes = std::vector<std::uint8_t>;

// Requests cut into pieces of random length for random connections.
Bytes conversation(std::mt19937& random) {
  const Keys names{"a", "b", "c", "longer name", ""};
  const auto name = [&] { return names[random() % names.size()]; };
  const auto value = [&] { return std::string(random() % 3000, static_cast<char>(random())); };
  std::string streams[4];
  streams[0] = validate();
  for (int at = 0; at < 60; ++at) {
    std::string& stream = streams[random() % 4];
    switch (random() % 12) {
      case 0:
        stream += set(name(), value());
        break;
      case 1:
        stream += append(name(), value());
        break;
      case 2:
        stream += add(name(), static_cast<std::int64_t>(random()));
        break;
      case 3:
        stream += compare_set(name(), "", value());
        break;
      case 4:
        stream += wait({name(), name()}) + cancel_wait();
        break;
      case 5:
        stream += wait({name()});
        break;
      case 6:
        stream += multi_set({{name(), value()}, {name(), ""}});
        break;
      case 7:
        stream += multi_get({name(), name(), name()});
        break;
      case 8:
        stream += delete_key(name());
        break;
      case 9:
        stream += queue_push(name(), value()) + queue_pop(name());
        break;
      case 10:
        stream += barrier(name(), static_cast<std::int64_t>(random() % 3));
        break;
      default:
        stream += byte(static_cast<int>(random() % 20));
        break;
    }
  }
  Bytes input;
  while (!streams[0].empty() || !streams[1].empty() || !streams[2].empty() || !streams[3].empty()) {
    const std::size_t client = random() % 4;
    const std::size_t length = std::min<std::size_t>(random() % 32, streams[client].size());
    const bool leave = random() % 200 == 0;
    input.push_back(static_cast<std::uint8_t>(length << 3 | (leave ? 4 : 0) | client));
    input.insert(input.end(), streams[client].begin(),
                 streams[client].begin() + static_cast<std::ptrdiff_t>(length));
    streams[client].erase(0, length);
  }
  return input;
}

}  // namespace

TEST_CASE("five hundred generated conversations break no invariant of the store") {
  for (unsigned seed = 1; seed <= 500; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    replay(conversation(random));
  }
  SUCCEED();
}

TEST_CASE("a thousand random inputs break no invariant of the store") {
  for (unsigned seed = 1; seed <= 1000; ++seed) {
    std::mt19937 random(seed);
    Bytes noise(random() % 1000);
    for (std::uint8_t& byte : noise) byte = static_cast<std::uint8_t>(random());
    replay(noise);
  }
  SUCCEED();
}

#include "agent/worker_link/packet.hpp"

#include <algorithm>
#include <vector>

#include "tests/support/catch.hpp"
#include "worker_api/link_page.hpp"

using namespace ddprun::worker_link;

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes checkpoint(std::size_t path_bytes) {
  const Bytes head{1, 4, 0x39, 0x05, 0, 0, 0, 0, 0, 0};
  Bytes bytes(head.size() + path_bytes, '/');
  std::copy(head.begin(), head.end(), bytes.begin());
  return bytes;
}

}  // namespace

TEST_CASE("each packet of a worker is parsed, of its own version only") {
  CHECK(std::holds_alternative<Hello>(*parse_packet(Bytes{1, 1})));
  CHECK(std::holds_alternative<Look>(*parse_packet(Bytes{1, 2})));
  CHECK(std::holds_alternative<Ready>(*parse_packet(Bytes{1, 3})));
  const auto written = std::get<Checkpoint>(*parse_packet(checkpoint(2)));
  CHECK(written.step == 1337);
  CHECK(written.path == "//");
  CHECK(std::holds_alternative<Survives>(*parse_packet(Bytes{1, 5})));
  CHECK(std::get<Joined>(*parse_packet(Bytes{1, 6, 1, 2, 0, 0})).round == ddprun::Round(513));
  for (const Bytes& bytes :
       {Bytes{}, Bytes{1}, Bytes{2, 1}, Bytes{0, 1}, Bytes{1, 0}, Bytes{1, 7}, Bytes{1, 16},
        Bytes{1, 17}, Bytes{1, 3, 0}, Bytes{1, 5, 0}, Bytes{1, 6}, Bytes{1, 6, 1, 0, 0},
        Bytes{1, 6, 1, 0, 0, 0, 0}, Bytes{1, 6, 0, 0, 0, 0x80}}) {
    CHECK_FALSE(parse_packet(bytes));
  }
}

TEST_CASE("the path of a checkpoint has a limit, and no NUL") {
  CHECK(parse_packet(checkpoint(kPathBytesMax)));
  CHECK_FALSE(parse_packet(checkpoint(kPathBytesMax + 1)));
  CHECK_FALSE(parse_packet(checkpoint(0)));
  Bytes with_nul = checkpoint(3);
  with_nul[11] = 0;
  CHECK_FALSE(parse_packet(with_nul));
}

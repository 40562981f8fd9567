// The diagrams of docs/internals/STATES.md against what simulated lives go through: no arrow too
// few, none too many.
#include <fstream>
#include <set>

#include "tests/sim/chaos.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;

namespace {

constexpr int kLives = 1000;

struct Documented {
  std::set<std::string> arrows;
  std::set<std::string> rare;  // so many lives may not have them
};

/// "forming --> running: why" gives "forming --> running"; start and end of a diagram are left out.
Documented documented() {
  std::ifstream file(DDPRUN_STATES);
  Documented found;
  for (std::string line; std::getline(file, line);) {
    const std::size_t from = line.find_first_not_of(' ');
    const bool is_arrow =
        line.find(" --> ") != std::string::npos && line.find("[*]") == std::string::npos;
    if (!is_arrow) continue;
    const std::string arrow = line.substr(from, line.find(':') - from);
    found.arrows.insert(arrow);
    if (line.ends_with("(rare)")) found.rare.insert(arrow);
  }
  return found;
}

}  // namespace

TEST_CASE("docs/internals/STATES.md has every transition of the cores, and no other") {
  std::set<std::string> seen = documented().rare;
  for (int seed = 1; seed <= kLives; ++seed) {
    seen.merge(sim::run_chaos(static_cast<std::uint64_t>(seed), {}, nullptr).transitions);
  }
  CHECK(seen == documented().arrows);
}

// Runs seeded lives of a run whose coordinators fail over:
// failover_lives [--seeds FROM COUNT] [--trace] [--keep-going]. FAILOVER_SEEDS="FROM COUNT" in the
// environment does the same as --seeds. A violation prints its seed and how to replay it; exit 1.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>

#include "tests/failover/storm.hpp"

namespace {

struct Arguments {
  std::uint64_t first = 1;
  std::uint64_t count = 1000;
  bool trace = false;
  bool keep_going = false;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  if (const char* seeds = std::getenv("FAILOVER_SEEDS")) {
    char* rest = nullptr;
    arguments.first = std::strtoull(seeds, &rest, 10);
    arguments.count = std::strtoull(rest, nullptr, 10);
  }
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--seeds" && i + 2 < argc) {
      arguments.first = std::strtoull(argv[++i], nullptr, 10);
      arguments.count = std::strtoull(argv[++i], nullptr, 10);
    } else if (name == "--trace") {
      arguments.trace = true;
    } else if (name == "--keep-going") {
      arguments.keep_going = true;
    } else {
      std::fprintf(stderr, "usage: failover_lives [--seeds FROM COUNT] [--trace] [--keep-going]\n");
      std::exit(2);
    }
  }
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  std::map<int, int> exits;
  long long rounds = 0;
  unsigned long long steps = 0;
  int violations = 0;
  int apart = 0;
  const auto print = [](const std::string& line) { std::printf("%s\n", line.c_str()); };
  for (std::uint64_t seed = arguments.first; seed < arguments.first + arguments.count; ++seed) {
    try {
      const auto summary = arguments.trace ? ddprun::failover::run_life(seed, print)
                                           : ddprun::failover::run_life(seed, {});
      rounds += summary.rounds;
      steps += summary.steps;
      apart += summary.two_runs ? 1 : 0;
      for (const auto& [code, agents] : summary.exits) exits[code] += agents;
    } catch (const std::exception& violation) {
      std::printf("seed %llu: %s\nreplay: %s --seeds %llu 1 --trace\n",
                  static_cast<unsigned long long>(seed), violation.what(), argv[0],
                  static_cast<unsigned long long>(seed));
      ++violations;
      if (!arguments.keep_going) return 1;
    }
  }
  std::printf("%llu seeds, %lld rounds, %llu steps; last agents of hosts ended with:",
              static_cast<unsigned long long>(arguments.count), rounds, steps);
  for (const auto& [code, agents] : exits) std::printf(" %d: %d", code, agents);
  std::printf("; %d with two runs that began apart, %d violations\n", apart, violations);
  return violations == 0 ? 0 : 1;
}

// Runs seeded lives of a cluster: sim [--first SEED] [--count N] [--trace]. A violation prints its
// seed and the command that replays it with a trace; exit 1. Any count is a soak.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>

#include "tests/sim/chaos.hpp"

namespace {

struct Arguments {
  std::uint64_t first = 1;
  std::uint64_t count = 1;
  bool trace = false;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const bool has_value = i + 1 < argc;
    if (name == "--trace") {
      arguments.trace = true;
    } else if (name == "--first" && has_value) {
      arguments.first = std::strtoull(argv[++i], nullptr, 10);
    } else if (name == "--count" && has_value) {
      arguments.count = std::strtoull(argv[++i], nullptr, 10);
    } else {
      std::fprintf(stderr, "usage: sim [--first SEED] [--count N] [--trace]\n");
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
  long long restarts = 0;
  unsigned long long steps = 0;
  for (std::uint64_t seed = arguments.first; seed < arguments.first + arguments.count; ++seed) {
    const auto print = [](const std::string& line) { std::printf("%s\n", line.c_str()); };
    try {
      const auto summary =
          arguments.trace ? ddprun::sim::run_chaos(seed, print) : ddprun::sim::run_chaos(seed, {});
      rounds += summary.rounds;
      restarts += summary.restarts;
      steps += summary.steps;
      ++exits[summary.exit_code];
    } catch (const std::exception& violation) {
      std::printf("seed %llu: %s\nreplay: %s --first %llu --trace\n",
                  static_cast<unsigned long long>(seed), violation.what(), argv[0],
                  static_cast<unsigned long long>(seed));
      return 1;
    }
  }
  std::printf("%llu seeds, %llu steps, %lld rounds, %lld restarts; worst exit code of a run:",
              static_cast<unsigned long long>(arguments.count), steps, rounds, restarts);
  for (const auto& [code, runs] : exits) std::printf(" %d in %d", code, runs);
  std::printf("\n");
  return 0;
}

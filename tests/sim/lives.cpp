#include "tests/sim/lives.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>

namespace ddprun::sim {

namespace {

struct Arguments {
  std::uint64_t first = 1;
  std::uint64_t count = 1;
  bool trace = false;
  bool keep_going = false;
  std::string repeat;  // the options that changed the lives
};

[[noreturn]] void end_with_usage(const std::string& why) {
  std::fprintf(stderr,
               "%s: [--first SEED] [--count N] [--seeds SEED N] [--trace] [--keep-going] "
               "[--only FAULT] [--weight FAULT=N] [--strict PROMISE|all] [--list]\n",
               why.c_str());
  std::exit(2);
}

Arguments parse(int argc, char** argv, const LivesProgram& program) {
  Arguments arguments;
  const auto number = [argv](int at) { return std::strtoull(argv[at], nullptr, 10); };
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--trace") {
      arguments.trace = true;
    } else if (name == "--keep-going") {
      arguments.keep_going = true;
    } else if (name == "--list") {
      std::printf("%s", program.list().c_str());
      std::exit(0);
    } else if (name == "--seeds" && i + 2 < argc) {
      arguments.first = number(++i);
      arguments.count = number(++i);
    } else if (name == "--first" && i + 1 < argc) {
      arguments.first = number(++i);
    } else if (name == "--count" && i + 1 < argc) {
      arguments.count = number(++i);
    } else if (i + 1 < argc && program.take(name, argv[i + 1])) {
      arguments.repeat += " " + name + " '" + argv[++i] + "'";
    } else {
      end_with_usage("not an option, or not its value, " + name);
    }
  }
  return arguments;
}

/// What all lives came to.
struct Total {
  long long rounds = 0;
  long long restarts = 0;
  unsigned long long steps = 0;
  int violations = 0;
  int apart = 0;
  std::map<int, int> exits;
  std::map<std::string_view, int> known;

  void add(const Summary& life) {
    rounds += life.rounds;
    restarts += life.restarts;
    steps += life.steps;
    apart += life.two_runs ? 1 : 0;
    for (const auto& [code, times] : life.exits) exits[code] += times;
    for (const auto& [name, times] : life.known_violations) known[name] += times;
  }
  void print(std::uint64_t seeds, const std::string& codes_of) const {
    std::printf("%llu seeds, %llu steps, %lld rounds, %lld restarts; exit codes of %s:",
                static_cast<unsigned long long>(seeds), steps, rounds, restarts, codes_of.c_str());
    for (const auto& [code, times] : exits) std::printf(" %d: %d", code, times);
    if (apart > 0) std::printf("; %d with two runs that began apart", apart);
    std::printf("; %d violations\n", violations);
    for (const auto& [name, times] : known) {
      std::printf("known to be broken: %s, %d times\n", std::string(name).c_str(), times);
    }
  }
};

}  // namespace

int run_lives(int argc, char** argv, const LivesProgram& program) {
  const Arguments arguments = parse(argc, argv, program);
  const Print print = [](const std::string& line) { std::printf("%s\n", line.c_str()); };
  Total total;
  for (std::uint64_t seed = arguments.first; seed < arguments.first + arguments.count; ++seed) {
    try {
      total.add(program.life(seed, arguments.trace ? print : Print()));
    } catch (const std::exception& violation) {
      std::printf("seed %llu: %s\nreplay: %s --first %llu --trace%s\n",
                  static_cast<unsigned long long>(seed), violation.what(), argv[0],
                  static_cast<unsigned long long>(seed), arguments.repeat.c_str());
      std::fflush(stdout);
      ++total.violations;
      if (!arguments.keep_going) return 1;
    }
  }
  total.print(arguments.count, program.codes_of);
  return total.violations == 0 ? 0 : 1;
}

}  // namespace ddprun::sim

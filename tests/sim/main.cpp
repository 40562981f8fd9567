// Runs seeded lives of a cluster: sim [--first SEED] [--count N] [--trace] [--only FAULT]
// [--weight FAULT=N] [--strict PROMISE|all] [--list]. A violation prints its seed, the faults that
// struck and the command that replays it with a trace; exit 1. Any count is a soak.
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
  ddprun::sim::ChaosOptions chaos;
  std::string repeat;  // the options that changed those
};

[[noreturn]] void end_with_usage(const std::string& why) {
  std::fprintf(stderr,
               "%ssim [--first SEED] [--count N] [--trace] [--only FAULT] [--weight FAULT=N] "
               "[--strict PROMISE|all] [--list]\n",
               why.c_str());
  std::exit(2);
}

void take(Arguments& arguments, const std::string& name, const std::string& value) {
  if (name == "--first") {
    arguments.first = std::strtoull(value.c_str(), nullptr, 10);
  } else if (name == "--count") {
    arguments.count = std::strtoull(value.c_str(), nullptr, 10);
  } else if (name == "--only" || name == "--weight") {
    const bool known =
        name == "--only" ? arguments.chaos.faults.only(value) : arguments.chaos.faults.weigh(value);
    if (!known) end_with_usage("no such fault: " + value + "; --list names them\n");
    arguments.repeat += " " + name + " " + value;
  } else if (name == "--strict") {
    arguments.chaos.strict = value;
    arguments.repeat += " " + name + " '" + value + "'";
  } else {
    end_with_usage("usage: ");
  }
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--trace") {
      arguments.trace = true;
    } else if (name == "--list") {
      std::printf("%s", arguments.chaos.faults.list().c_str());
      std::exit(0);
    } else if (i + 1 < argc) {
      take(arguments, name, argv[++i]);
    } else {
      end_with_usage("usage: ");
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
  std::map<std::string_view, int> known;
  for (std::uint64_t seed = arguments.first; seed < arguments.first + arguments.count; ++seed) {
    const auto print = [](const std::string& line) { std::printf("%s\n", line.c_str()); };
    try {
      const auto summary = arguments.trace ? ddprun::sim::run_chaos(seed, arguments.chaos, print)
                                           : ddprun::sim::run_chaos(seed, arguments.chaos, {});
      rounds += summary.rounds;
      restarts += summary.restarts;
      steps += summary.steps;
      ++exits[summary.exit_code];
      for (const auto& [name, count] : summary.known_violations) known[name] += count;
    } catch (const std::exception& violation) {
      std::printf("seed %llu: %s\nreplay: %s --first %llu --trace%s\n",
                  static_cast<unsigned long long>(seed), violation.what(), argv[0],
                  static_cast<unsigned long long>(seed), arguments.repeat.c_str());
      return 1;
    }
  }
  std::printf("%llu seeds, %llu steps, %lld rounds, %lld restarts; worst exit code of a run:",
              static_cast<unsigned long long>(arguments.count), steps, rounds, restarts);
  for (const auto& [code, runs] : exits) std::printf(" %d in %d", code, runs);
  std::printf("\n");
  for (const auto& [name, count] : known) {
    std::printf("known to be broken: %s, %d times\n", std::string(name).c_str(), count);
  }
  return 0;
}

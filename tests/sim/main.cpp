// Seeded lives of a cluster with one coordinator: see lives.hpp. `--strict PROMISE`, or all: a
// violation that is known ends a life, too.
#include "tests/sim/chaos.hpp"
#include "tests/sim/lives.hpp"

int main(int argc, char** argv) {
  using namespace ddprun::sim;
  ChaosOptions options;
  LivesProgram program = program_of("runs, the worst of each", options.faults,
                                    [&options](std::uint64_t seed, const Print& print) {
                                      return run_chaos(seed, options, print);
                                    });
  program.take = [&options, others = program.take](const std::string& option,
                                                   const std::string& value) {
    if (option != "--strict") return others(option, value);
    options.strict = value;
    return true;
  };
  return run_lives(argc, argv, program);
}

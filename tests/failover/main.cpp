// Seeded lives of a run whose coordinators fail over: see tests/sim/lives.hpp.
#include "tests/failover/storm.hpp"

int main(int argc, char** argv) {
  using namespace ddprun;
  sim::Faults<failover::Storm> faults = failover::failover_faults();
  return sim::run_lives(argc, argv,
                        sim::program_of("the last agents of hosts", faults,
                                        [&faults](std::uint64_t seed, const sim::Print& print) {
                                          return failover::run_life(seed, faults, print);
                                        }));
}

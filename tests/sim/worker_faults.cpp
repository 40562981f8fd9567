// What can happen to the workers of a node, and to the files that they use.
#include <csignal>

#include "tests/sim/faults.hpp"

namespace ddprun::sim {

namespace {

void later(World& world, Duration delay, std::function<void()> what) {
  world.timeline().after(delay, [&world, what = std::move(what)] {
    world.disturb();
    what();
  });
}

void fail_worker(World& world, int node) {
  world.fail_worker(node, "exit code 3", 3);
}

// A failure, and a user who presses Ctrl-C at what it prints.
void fail_and_interrupt(World& world, int node) {
  world.fail_worker(node, "exit code 3", 3);
  const int other = world.random().between(0, world.node_count() - 1);
  later(world, milliseconds(world.random().between(0, 2000)),
        [&world, other] { world.signal_agent(other, SIGINT); });
}

void give_up_ranks(World& world, int node) {
  world.give_up_ranks(node);
}

void give_up_for_good(World& world, int node) {
  world.give_up_ranks(node, "a rank is in state D");
}

void be_quiet(World& world, int node) {
  world.make_quiet(node, milliseconds(world.random().between(100, 60'000)));
}

// One rank hangs, and sooner or later all others wait for it; some of them not long enough.
void hang_round(World& world, int) {
  for (int id = 0; id < world.node_count(); ++id) {
    const bool moves = world.random().chance(15);
    const auto time = milliseconds(moves ? world.random().between(100, 40'000) : 300'000);
    later(world, milliseconds(world.random().between(0, 10'000)),
          [&world, id, time] { world.make_quiet(id, time); });
  }
}

void break_spawn(World& world, int node) {
  world.break_next_spawn(node);
}

/// How long a process hangs in the kernel.
Duration long_or_for_ever(World& world) {
  const bool for_ever = world.random().chance(50);
  return for_ever ? Duration(std::chrono::hours(1000))
                  : Duration(milliseconds(world.random().between(1, 90'000)));
}

void hang_worker(World& world, int node) {
  world.make_unkillable(node, long_or_for_ever(world));
}

void hang_helpers(World& world, int node) {
  world.leave_helpers(node, World::Helpers::kUnkillable, long_or_for_ever(world));
}

void leave_helpers(World& world, int node) {
  constexpr World::Helpers kKinds[] = {World::Helpers::kObedient, World::Helpers::kStubborn,
                                       World::Helpers::kElsewhere};
  world.leave_helpers(node, kKinds[world.random().between(0, 2)],
                      milliseconds(world.random().between(1, 40'000)));
}

void stall_output(World& world, int node) {
  world.stall_output(node, milliseconds(world.random().between(100, 30'000)));
}

void stall_start(World& world, int node) {
  world.stall_start(node, milliseconds(world.random().between(100, 30'000)));
}

constexpr WorkerFault kWorkerFaults[] = {
    {"fail-worker", 16, false, fail_worker},
    {"fail-and-interrupt", 2, false, fail_and_interrupt},
    {"give-up-ranks", 3, false, give_up_ranks},
    {"give-up-for-good", 1, false, give_up_for_good},
    {"be-quiet", 3, false, be_quiet},
    {"hang-round", 3, false, hang_round},
    {"break-spawn", 1, false, break_spawn},
    {"hang-worker", 1, false, hang_worker},
    {"hang-helpers", 1, false, hang_helpers},
    {"leave-helpers", 4, true, leave_helpers},
    {"stall-output", 3, true, stall_output},
    {"stall-start", 3, true, stall_start},
};

}  // namespace

std::span<const WorkerFault> worker_faults() {
  return kWorkerFaults;
}

}  // namespace ddprun::sim

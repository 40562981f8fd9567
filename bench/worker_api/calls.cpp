// What the calls of worker_api cost a training step: nanoseconds for each, with a link to ddprun,
// or without one where ddprun has not started it. Exits with 1 if a step costs more than its goal:
// ddprun --standalone --no-python bench_worker_api
#include <chrono>
#include <cstdio>
#include <cstring>

#include "worker_api/worker.h"

namespace {

constexpr double kGoal_ns = 10'000;  // step_done()

template <class Call>
double nanoseconds_of(int calls, Call call) {
  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  for (int i = 0; i < calls; ++i) call(i);
  return std::chrono::duration<double, std::nano>(Clock::now() - began).count() / calls;
}

}  // namespace

int main(int argc, char** argv) {
  const bool tiny = argc > 1 && std::strcmp(argv[1], "--tiny") == 0;
  const int calls = tiny ? 1000 : 2'000'000;
  const bool linked = ddprun_worker_step_done(0) == 0;
  const double step = nanoseconds_of(calls, [](int i) { ddprun_worker_step_done(i); });
  const double section = nanoseconds_of(
      calls, [](int) { ddprun_worker_section_end(ddprun_worker_section_begin("step", 600'000)); });
  const double stop =
      nanoseconds_of(calls, [](int) { static_cast<void>(ddprun_worker_stop_requested()); });
  std::printf("%s: step_done %.0f ns (goal %.0f), section %.0f ns, stop_requested %.0f ns\n",
              linked ? "linked to ddprun" : "without ddprun", step, kGoal_ns, section, stop);
  return step > kGoal_ns ? 1 : 0;
}

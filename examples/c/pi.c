/* A worker in C: each rank estimates pi from its own random points; the seed is one that all ranks
 * agree on. Reports its steps, and ends early when the run is stopped.
 *   ddprun --standalone --nproc-per-node 4 build/example_c/pi 100 */
#include <ddprun/worker.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 0 <= result < 1, from the upper bits of a linear congruence. */
static double next_random(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(*state >> 11) / 9007199254740992.0;
}

static long points_inside(uint64_t* state, long points) {
  long inside = 0;
  for (long i = 0; i < points; ++i) {
    const double x = next_random(state);
    const double y = next_random(state);
    if (x * x + y * y < 1) ++inside;
  }
  return inside;
}

int main(int argc, char** argv) {
  enum { kPoints = 10000, kTimeout_ms = 60000 };
  const long steps = argc > 1 ? atol(argv[1]) : 100;
  struct ddprun_worker worker = {sizeof worker};
  char problem[200];
  if (ddprun_worker_read(&worker, problem, sizeof problem) != 0) {
    fprintf(stderr, "%s\n", problem);
    return 1;
  }
  uint64_t seed = (uint64_t)getpid(); /* each rank proposes its own; the first one counts */
  size_t size = sizeof seed;
  const int failed = ddprun_worker_agree("seed", &seed, sizeof seed, &seed, &size, kTimeout_ms);
  if (failed != 0) {
    fprintf(stderr, "no seed: %s\n", strerror(failed));
    return 1;
  }
  ddprun_worker_handle_stop();
  ddprun_worker_ready();
  uint64_t state = seed + (uint64_t)worker.rank;
  long inside = 0;
  long step = 0;
  for (; step < steps && ddprun_worker_stop_requested() == 0; ++step) {
    inside += points_inside(&state, kPoints);
    ddprun_worker_step_done(step);
  }
  printf("rank %d of %d: pi is about %.2f after %ld steps, seed %llu\n", worker.rank,
         worker.world_size, step == 0 ? 0 : 4.0 * (double)inside / (double)(step * kPoints), step,
         (unsigned long long)seed);
  return 0;
}

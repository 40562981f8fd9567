// count.sh in C++ with the worker library: validates the environment, ignores SIGPIPE, and records
// exceptions for ddprun's report. Another project finds the library like this:
//   find_package(ddprun REQUIRED)
//   target_link_libraries(my_worker PRIVATE ddprun::worker)   // #include <ddprun/worker.hpp>
// Run it: ddprun --standalone --nproc-per-node 2 build/dev/bin/count_worker 60
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>

#include "worker_api/worker.hpp"

namespace {

int count(int steps) {
  std::string problem;
  const auto worker = ddprun::read_worker_environment(problem);
  if (!worker) throw std::runtime_error(problem);
  for (int step = 0; step < steps; ++step) {
    std::printf("rank %d of %d, round %d: step %d\n", worker->rank, worker->world_size,
                worker->round, step);
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ddprun::ignore_sigpipe();
  return ddprun::recorded([&] { return count(argc > 1 ? std::stoi(argv[1]) : 60); });
}

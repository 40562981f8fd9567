// A worker that fails as a C++ training program would.
#include <stdexcept>

#include "worker_api/worker.hpp"

int main() {
  return ddprun::recorded([]() -> int { throw std::runtime_error("needle \"7\" \xFF"); });
}

#include <ddprun/worker.hpp>
#include <iostream>
#include <string>

int main() {
  std::string problem;
  const auto worker = ddprun::read_worker_environment(problem);
  if (!worker) {
    std::cerr << problem << "\n";
    return 1;
  }
  std::cout << "rank " << worker->rank << " of " << worker->world_size
            << (worker->launched ? ", launched\n" : ", no launcher\n");
}

#include <unistd.h>

#include "launcher/front/front.hpp"
#include "launcher/run.hpp"

int main(int argc, char** argv) {
  return ddprun::run_below_front(argc, argv, [&] { return ddprun::run(argc, argv, environ); });
}

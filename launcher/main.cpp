#include <unistd.h>

#include "launcher/run.hpp"

int main(int argc, char** argv) {
  return ddprun::run(argc, argv, environ);
}

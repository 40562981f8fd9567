#include <unistd.h>

#include "launcher/commands/table.hpp"
#include "launcher/front/front.hpp"
#include "launcher/run.hpp"

int main(int argc, char** argv) {
  if (const auto code = ddprun::run_command(argc, argv, environ)) return *code;
  const ddprun::UserProcess user = ddprun::this_process();
  return ddprun::run_below_front(argc, argv,
                                 [&] { return ddprun::run(argc, argv, environ, user); });
}

#include <unistd.h>

#include "launcher/commands/table.hpp"
#include "launcher/detach.hpp"
#include "launcher/front/front.hpp"
#include "launcher/run.hpp"

int main(int argc, char** argv) {
  if (const auto code = ddprun::run_command(argc, argv, environ)) return *code;
  ddprun::UserProcess user = ddprun::this_process();
  if (const auto code = ddprun::detach(argc, argv, environ, user)) return *code;
  return ddprun::run_below_front(argc, argv,
                                 [&] { return ddprun::run(argc, argv, environ, user); });
}

#include <unistd.h>

#include "base/program_name.hpp"
#include "launcher/called.hpp"
#include "launcher/commands/table.hpp"
#include "launcher/detach.hpp"
#include "launcher/front/front.hpp"
#include "launcher/run.hpp"

int main(int argc, char** argv) {
  const ddprun::Called called = ddprun::called_as(argc > 0 ? argv[0] : "");
  ddprun::set_program_name(ddprun::name_of(called));
  if (called == ddprun::Called::kDdprun) {
    if (const auto code = ddprun::run_command(argc, argv, environ)) return *code;
  }
  ddprun::UserProcess user = ddprun::this_process();
  if (const auto code = ddprun::detach(argc, argv, environ, user)) return *code;
  return ddprun::run_below_front(argc, argv,
                                 [&] { return ddprun::run(argc, argv, environ, user, called); });
}

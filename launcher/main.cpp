#include <unistd.h>

#include <utility>

#include "base/program_name.hpp"
#include "base/secret.hpp"
#include "launcher/called.hpp"
#include "launcher/commands/table.hpp"
#include "launcher/detach.hpp"
#include "launcher/front/front.hpp"
#include "launcher/run.hpp"

int main(int argc, char** argv) {
  ddprun::SharedSecret secret = ddprun::take_secret_variable(environ);
  const ddprun::Called called = ddprun::called_as(argc > 0 ? argv[0] : "");
  ddprun::set_program_name(ddprun::name_of(called));
  if (called == ddprun::Called::kDdprun) {
    if (const auto code = ddprun::run_command(argc, argv, environ)) return *code;
  }
  ddprun::UserProcess user = ddprun::this_process();
  user.secret = std::move(secret);
  if (const auto code = ddprun::detach(argc, argv, environ, user)) return *code;
  return ddprun::run_below_front(argc, argv,
                                 [&] { return ddprun::run(argc, argv, environ, user, called); });
}

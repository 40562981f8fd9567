// `ddprun secret`.
#include "base/printable.hpp"
#include "launcher/commands/commands.hpp"
#include "launcher/commands/terminal.hpp"
#include "launcher/home_secret.hpp"

namespace ddprun::commands {

namespace {

constexpr const char* kWhatItDoes =
    ": runs of this user over several nodes use it by themselves, on every node that has this "
    "file\n";

}  // namespace

int secret(const Arguments& arguments, const Environment& environment) {
  const bool makes = arguments == Arguments{"--new"};
  if (!arguments.empty() && !makes) return misuse("ddprun secret takes --new or nothing");
  if (makes) {
    const auto made = make_home_secret(environment);
    if (!made) return fail(made.error().sentence, "SECRET");
    return print("made " + printable(*made) + kWhatItDoes);
  }
  const auto found = read_home_secret(environment);
  if (!found) return fail(found.error().sentence, "SECRET");
  const std::string path = printable(home_secret_path(environment));
  if (*found == nullptr) {
    return fail("there is no " + path + "; ddprun secret --new makes it", "SECRET");
  }
  return print(path + kWhatItDoes);
}

}  // namespace ddprun::commands

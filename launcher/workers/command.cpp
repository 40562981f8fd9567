#include "launcher/workers/command.hpp"

#include "base/assert.hpp"
#include "launcher/usage.hpp"

namespace ddprun {
namespace {

using Id = OptionId;

/// In the default mode: does `name` run without Python, and as what?
std::optional<std::string> own_program(const std::string& name, const Machine& machine) {
  if (name.ends_with(".py")) return std::nullopt;
  const bool has_folder = name.find('/') != std::string::npos;
  switch (machine.inspect(name)) {
    case FileKind::kProgram:
      return has_folder ? name : "./" + name;
    case FileKind::kPythonScript:
    case FileKind::kOther:
      return std::nullopt;
    // Not here: a name is looked up on PATH by whoever starts it, and a missing program is named
    // there.
    case FileKind::kMissing:
      return name;
  }
  return std::nullopt;
}

}  // namespace

Result<std::string> choose_python(const Machine& machine) {
  const Environment& environment = machine.environment();
  if (const auto found = environment.find("PYTHON_EXEC"); found != environment.end()) {
    if (!found->second.empty()) return found->second;
    return usage("PYTHON_EXEC is set, but empty; name an interpreter in it, or unset it");
  }
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string folder = value_or(environment, variable, "");
    const std::string python = folder + "/bin/python";
    if (!folder.empty() && machine.inspect(python) != FileKind::kMissing) return python;
  }
  return std::string("python3");
}

Result<std::vector<std::string>> worker_command(const Settings& settings,
                                                const std::vector<std::string>& program,
                                                const Machine& machine) {
  DDPRUN_ASSERT(!program.empty());
  const bool module = settings.on(Id::kModule);
  const bool no_python = settings.on(Id::kNoPython);
  if (module && no_python) {
    return usage(settings.named(Id::kModule) + " and " + settings.named(Id::kNoPython) +
                 " exclude each other: a module needs Python");
  }
  std::vector<std::string> command;
  const auto own = module      ? std::nullopt
                   : no_python ? std::optional(program[0])
                               : own_program(program[0], machine);
  if (own) {
    command = {*own};
  } else {
    auto python = choose_python(machine);
    if (!python) return python.error();
    command = {*python, "-u"};
    if (module) command.emplace_back("-m");
    command.push_back(program[0]);
  }
  command.insert(command.end(), program.begin() + 1, program.end());
  return command;
}

}  // namespace ddprun

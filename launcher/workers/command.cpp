#include "launcher/workers/config.hpp"

#include <algorithm>

#include "launcher/options/values.hpp"
#include "launcher/workers/run_path_text.hpp"

namespace ddprun {
namespace {

/// As under torchrun: "-" is a script on stdin, and behind a "--" an option of the interpreter,
/// such as -c, may take the place of the script.
bool is_for_python(const std::string& name) {
  return name.starts_with('-');
}

/// A wrapper may run Python elsewhere, in a container for example, where the script is.
bool runs_here(const std::string& interpreter) {
  const std::string name = interpreter.substr(interpreter.rfind('/') + 1);
  return name.starts_with("python") || name.starts_with("pypy");
}

/// In the default mode: the program that runs without Python, if `name` is one.
std::optional<std::string> own_program(const std::string& name, const Machine& machine) {
  if (name.ends_with(".py") || is_for_python(name)) return std::nullopt;
  const bool has_folder = name.find('/') != std::string::npos;
  switch (machine.inspect(name)) {
    case FileKind::kProgram:
      return has_folder ? name : "./" + name;
    case FileKind::kPythonScript:
    case FileKind::kNotExecutable:
    case FileKind::kOther:
      return std::nullopt;
    // A name is looked up on PATH when the worker is started, which also reports a missing
    // program.
    case FileKind::kMissing:
      return name;
  }
  return std::nullopt;
}

}  // namespace

Result<PythonChoice> choose_python(const Machine& machine) {
  const Environment& environment = machine.environment();
  if (const auto found = environment.find("PYTHON_EXEC"); found != environment.end()) {
    if (!found->second.empty()) return PythonChoice{found->second, "from PYTHON_EXEC"};
    return usage("PYTHON_EXEC is set, but empty; name an interpreter in it, or unset it");
  }
  // As the torchrun of a virtual environment runs its Python, whatever environment is active.
  const std::string own = machine.program_folder();
  if (machine.is_plain_file(own.substr(0, own.rfind('/')) + "/pyvenv.cfg") &&
      machine.inspect(own + "/python") != FileKind::kMissing) {
    return PythonChoice{own + "/python", "of the virtual environment that ddprun is in"};
  }
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string folder = value_or(environment, variable, "");
    const std::string python = folder + "/bin/python";
    if (!folder.empty() && machine.inspect(python) != FileKind::kMissing) {
      return PythonChoice{python, std::string("from ") + variable};
    }
  }
  return PythonChoice{"python3", "the one in PATH"};
}

std::vector<std::string> shown_command(const std::vector<std::string>& command) {
  std::vector<std::string> shown = command;
  const auto code = std::find(shown.begin(), shown.end(), kRunPathText);
  if (code == shown.end()) return shown;
  *shown.erase(code - 1) = "--run-path";  // "-c" before it
  return shown;
}

std::vector<std::string> unused_with_run_path(const WorkerRequest& request) {
  std::vector<std::string> notes;
  if (!request.run_path.value) return notes;
  for (const Setting<bool>* other : {&request.module, &request.no_python}) {
    if (!other->value) continue;
    notes.push_back(other->name + " not used: " + request.run_path.name +
                    " runs a file with Python");
  }
  return notes;
}

Result<WorkerCommand> worker_command(const WorkerRequest& request, const Machine& machine) {
  const std::vector<std::string>& program = request.program;
  const bool run_path = request.run_path.value;
  const bool module = request.module.value && !run_path;
  const bool no_python = request.no_python.value && !run_path;
  if (module && no_python) {
    return usage(request.module.name + " and " + request.no_python.name +
                 " exclude each other: a module needs Python");
  }
  if (no_python && request.local_rank_argument) {
    return usage(request.no_python.name + " needs --use-env here: a program that is not Python " +
                 "gets no --local-rank");
  }
  WorkerCommand command;
  std::optional<std::string> own;
  if (no_python)
    own = program[0];
  else if (!module && !run_path)
    own = own_program(program[0], machine);
  if (own) {
    command.argv = {*own};
    command.reason = "runs without Python";
  } else {
    auto python = choose_python(machine);
    if (!python) return python.error();
    command.argv = {python->path, "-u"};
    command.reason = std::move(python->reason);
    if (module) command.argv.emplace_back("-m");
    if (run_path) command.argv.insert(command.argv.end(), {"-c", std::string(kRunPathText)});
    command.argv.push_back(program[0]);
    const bool is_file = !module && !is_for_python(program[0]);
    if (is_file && runs_here(python->path)) command.script = program[0];
  }
  if (request.local_rank_argument) command.argv.emplace_back("--local-rank=${local_rank}");
  command.argv.insert(command.argv.end(), program.begin() + 1, program.end());
  return command;
}

std::string script_note(const std::string& script, const Machine& machine) {
  if (script.ends_with(".py") || machine.inspect(script) != FileKind::kNotExecutable) return {};
  return script +
         " is a program for something other than Python, but it is not executable, so "
         "Python runs it, as under torchrun; try chmod +x on it";
}

}  // namespace ddprun

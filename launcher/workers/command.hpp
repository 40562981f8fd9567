// The command of a worker: which interpreter runs the program, or whether it is executed directly.
// Pure except for the facts that it queries from the machine.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "launcher/machine.hpp"
#include "launcher/request/request.hpp"

namespace ddprun {

struct WorkerCommand {
  std::vector<std::string> argv;
  std::string script;  // the file in it that Python runs; empty: none
  std::string reason;  // why this program or Python, in words
};

/// A .py file and a module run under Python, with -u. Of anything else in the default mode, an
/// executable that is not Python runs directly: a file at that path first, as torchrun would look
/// for it, else a name on PATH. The rest (a directory with __main__.py, an archive, a text) is
/// Python's.
[[nodiscard]] Result<WorkerCommand> worker_command(const WorkerRequest& request,
                                                   const Machine& machine);

/// What to tell the user about a script of it that is a program, but not executable; else empty.
[[nodiscard]] std::string script_note(const std::string& script, const Machine& machine);

/// The same as a user would write it: without the code that --run-path stands for.
[[nodiscard]] std::vector<std::string> shown_command(const std::vector<std::string>& command);

/// What --run-path takes precedence over, a note for each.
[[nodiscard]] std::vector<std::string> unused_with_run_path(const WorkerRequest& request);

struct PythonChoice {
  std::string path;
  std::string reason;  // in words
};
/// $PYTHON_EXEC, else that of the virtual environment that holds ddprun, else the active
/// virtualenv's or conda environment's, else python3 on PATH.
[[nodiscard]] Result<PythonChoice> choose_python(const Machine& machine);

}  // namespace ddprun

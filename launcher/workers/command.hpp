// The command of a worker: which interpreter runs the program, or whether it runs by itself. Pure
// but for the facts it asks the machine. No thread rule.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "launcher/machine.hpp"
#include "launcher/options/settings.hpp"

namespace ddprun {

/// `program`: the script and its arguments, as they stood on the command line; not empty.
///
/// A .py file and a module run under Python, with -u. Of anything else in the default mode, what is
/// executable and not Python just runs: a file at that path first, as torchrun would look for it,
/// else a name on PATH. The rest (a directory with __main__.py, an archive, a text) is Python's.
[[nodiscard]] Result<std::vector<std::string>> worker_command(
    const Settings& settings, const std::vector<std::string>& program, const Machine& machine);

/// $PYTHON_EXEC, else the active virtualenv's or conda environment's, else python3 on PATH.
[[nodiscard]] Result<std::string> choose_python(const Machine& machine);

}  // namespace ddprun

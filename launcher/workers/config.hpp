// The workers of this node: how many, which command, which devices, where their output goes. Pure
// except for the facts that it queries from the machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "agent/devices/devices.hpp"
#include "agent/proc/numa.hpp"
#include "base/environment.hpp"
#include "base/result.hpp"
#include "launcher/machine/machine.hpp"
#include "launcher/request/request.hpp"

namespace ddprun {

[[nodiscard]] Result<WorkerConfig> configure_workers(const WorkerRequest& request,
                                                     const Machine& machine);

/// That each worker sees one device although nothing said so.
[[nodiscard]] std::vector<std::string> notes_on_devices(const WorkerRequest& request,
                                                        const WorkerConfig& workers);

[[nodiscard]] Result<LogConfig> configure_logs(const LogRequest& request, const Machine& machine);

/// What was given and has no effect with so many workers on this node, as under torchrun.
[[nodiscard]] std::vector<std::string> notes_on_logs(const LogRequest& request,
                                                     const LogConfig& log, int workers);

// The command of a worker: which interpreter runs the program, or whether it is executed directly.
// Pure except for the facts that it queries from the machine.

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

// CommandIdentity: what nodes of one run compare, so that two jobs at one endpoint do not become
// one. Pure.

/// The same on two nodes that run the same program, wherever it and its Python are installed.
///
/// The parts that differ between nodes are not compared: the folder of the program, of a script
/// under Python and of an argument that is an absolute path; the interpreter; arguments that are
/// the name of this host; the values of --node-rank, --machine-rank, --local-addr, --host and
/// --hostname. `program` is the same on nodes whose arguments differ.
[[nodiscard]] CommandIdentity identify_command(const std::vector<std::string>& command,
                                               const std::string& host_name);

// OMP_NUM_THREADS: how many threads the CPUs of a worker carry. Pure.

/// The CPUs that the workers of a node share.
struct SharedCpus {
  int allowed = 1;                // in the affinity
  std::optional<double> quota{};  // CPU time by the cgroups; none: no limit
  std::vector<CpuSet> bound{};    // of each worker, with --numa-binding; empty: none is bound
};

/// For each worker its share of them, at least 1. A CPU that several are bound to is divided among
/// these; the quota is divided among all.
[[nodiscard]] std::vector<int> threads_of_workers(int workers, const SharedCpus& cpus);

// Whether workers may start from a template. Pure except for the facts that it queries from the
// machine.

/// Refused where the workers are no Python program started by ddprun, nothing is ever restarted, or
/// a GPU is visible.
[[nodiscard]] WarmConfig configure_warm(const WarmRequest& request, const LaunchConfig& launch,
                                        const Machine& machine);

// The look of the console: what --console is where it was not given. Pure.

/// rank0 where several ranks share a terminal. What is piped or redirected looks as under torchrun,
/// and so does what the user arranges with torchrun's options for output, or asks for with
/// --compat. Colours: on a terminal, without NO_COLOR. `on_terminal`: stdout and stderr are one.
/// Returns the reason in words; empty where --console was given.
std::string choose_console(LaunchConfig& config, const Environment& environment, bool on_terminal);

/// Whether a terminal may show a line that is redrawn. Not below workers that write there
/// themselves.
[[nodiscard]] bool may_draw_waits(const LogConfig& log, const Environment& environment);

}  // namespace ddprun

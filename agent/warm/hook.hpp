// The hook: agent/warm/sitecustomize.py, which this program carries, as an archive in memory that
// an interpreter imports by a path in PYTHONPATH. So it is there wherever ddprun was moved to, and
// leaves no file.
#pragma once

#include <string>

#include "base/environment.hpp"

namespace ddprun::warm {

/// A descriptor (CLOEXEC, the caller closes it) of the archive, or -1 with errno.
[[nodiscard]] int open_hook();

/// What a template is told, for variables that the hook removes.
struct HookOrder {
  int link = -1;     // descriptors that the interpreter inherits
  int archive = -1;  // from open_hook()
  int out = -1;      // files in memory for what modules print while they are imported
  int err = -1;
  int early_out = -1;  // pipes of what the interpreter prints before; -1: the files above
  int early_err = -1;
  int agent = 0;          // its process id; 0: say only that the hook is imported, and end
  int memory = -1;        // of a worker that has imported its modules; -1: they are named
  int maps = -1;          // the same
  std::string modules{};  // "torch,torch._dynamo"; of learned ones the first that is left out
  std::string mark{};     // DDPRUN_WORKER of the template
};
/// `worker`: the complete environment of a worker.
[[nodiscard]] Environment template_environment(const Environment& worker, const HookOrder& order);

/// A mark that is no worker's, with room for those of the workers of this agent: "3e35e7dd/-----".
[[nodiscard]] std::string template_mark(const std::string& of_worker);

/// A descriptor (CLOEXEC, the caller closes it) of a file in memory with this content, or -1 with
/// errno.
[[nodiscard]] int memory_file(const char* name, const std::string& content);

}  // namespace ddprun::warm

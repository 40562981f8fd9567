#include "agent/proc/program.hpp"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "agent/proc/files.hpp"
#include "base/descriptor.hpp"

namespace ddprun {
namespace {

namespace fs = std::filesystem;

Error cannot_run(ErrorKind kind, const std::string& program, const std::string& why) {
  return {kind, "cannot run " + program + ": " + why};
}

// The first line of a file, as much of it as the kernel looks at; empty for a FIFO or a device.
std::string first_line(const std::string& program) {
  const Descriptor file(open_regular_file(program, 0));
  if (file.number() < 0) return {};
  const std::string text = read_range(file.number(), 0, 256);
  return text.substr(0, text.find('\n'));
}

// The interpreter after #! in the first line of a script as the kernel reads it, without arguments;
// empty for any other file.
std::string interpreter_in(const std::string& line) {
  if (!line.starts_with("#!")) return {};
  const auto begin = line.find_first_not_of(" \t", 2);
  if (begin == std::string::npos) return {};
  return line.substr(begin, line.find_first_of(" \t", begin) - begin);
}

// The same without the end of a line of Windows.
std::string interpreter_of(const std::string& program) {
  std::string interpreter = interpreter_in(first_line(program));
  if (interpreter.ends_with('\r')) interpreter.pop_back();
  return interpreter;
}

Error missing(const std::string& program) {
  std::string why = "there is no such file";
  const std::string interpreter = interpreter_of(program);
  if (!interpreter.empty()) {
    why = "its interpreter " + interpreter + " (first line of the file) does not exist";
    why += first_line(program).ends_with('\r')
               ? "; the file has Windows line ends: convert it with dos2unix"
               : "; install it or fix the first line of the file";
  } else if (::access(program.c_str(), F_OK) == 0) {
    why = "the loader it was linked for does not exist; is it built for this system?";
  }
  return cannot_run(ErrorKind::kNotFound, program, why);
}

Error forbidden(const std::string& program) {
  struct stat status = {};
  std::string why = "it is not executable; try chmod +x on it";
  if (::access(program.c_str(), F_OK) != 0 && errno == EACCES) {
    why = "permission denied for a folder in its path";
  } else if (::stat(program.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    why = "it is not a regular file";
  } else if (::access(program.c_str(), X_OK) == 0) {
    const std::string interpreter = interpreter_of(program);
    why = interpreter.empty() ? "permission denied; is its file system mounted noexec?"
                              : "its interpreter " + interpreter + " is not executable";
  }
  return cannot_run(ErrorKind::kNotExecutable, program, why);
}

/// Why execve(program) failed with `error`.
Error exec_error(const std::string& program, int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return missing(program);
    case EACCES:
    case EPERM:
      return forbidden(program);
    case ENOEXEC:
      return cannot_run(ErrorKind::kNotExecutable, program,
                        "it is neither a program for this machine nor a script whose first line "
                        "names an interpreter (#!)");
    case E2BIG:
      return cannot_run(ErrorKind::kSystem, program,
                        "its arguments and environment are too long for the kernel");
    default:
      return cannot_run(ErrorKind::kNotExecutable, program, ::strerror(error));
  }
}

enum class Found { kNothing, kNotExecutable, kDirectory, kProgram };

Found find_at(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return Found::kNothing;
  if (S_ISDIR(status.st_mode)) return Found::kDirectory;
  return ::access(path.c_str(), X_OK) == 0 ? Found::kProgram : Found::kNotExecutable;
}

// Removes "." only: ".." after a symbolic link refers to the link's target.
std::string absolute(const std::string& path) {
  std::error_code ignored;  // fails only without a working directory, which execve reports
  fs::path full;
  for (const fs::path& part : fs::absolute(path, ignored)) {
    if (part != ".") full /= part;
  }
  return full.empty() ? path : full.string();
}

}  // namespace

Result<std::string> find_program(const std::string& name, const std::string& path) {
  if (name.empty()) return Error{ErrorKind::kNotFound, "cannot run a program without a name"};
  if (name.find('/') != std::string::npos) {
    switch (find_at(name)) {
      case Found::kProgram:
        return absolute(name);
      case Found::kDirectory:
        return cannot_run(ErrorKind::kNotExecutable, name, "it is a directory");
      case Found::kNotExecutable:
        return exec_error(name, EACCES);
      case Found::kNothing:
        return exec_error(name, errno);  // from stat()
    }
  }
  std::string refused;
  std::istringstream folders(path.empty() ? "/bin:/usr/bin" : path + ":");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    const Found found = find_at(candidate);
    if (found == Found::kProgram) return absolute(candidate);
    if (found == Found::kNotExecutable && refused.empty()) refused = candidate;
  }
  if (!refused.empty()) return exec_error(refused, EACCES);
  const bool here = find_at(name) != Found::kNothing;
  const std::string hint = here ? "; there is one in the working directory: try ./" + name : "";
  return cannot_run(ErrorKind::kNotFound, name, "not found in PATH" + hint);
}

Result<void> find_script(const std::string& path) {
  struct stat status = {};
  if (path.empty() || ::stat(path.c_str(), &status) == 0) return {};
  if (errno != ENOENT && errno != ENOTDIR) return {};
  std::error_code unknown;
  const std::string folder = fs::current_path(unknown).string();
  const bool relative = !path.starts_with('/') && !unknown;
  return cannot_run(ErrorKind::kNoScript, path,
                    "there is no such file" + (relative ? " in " + folder : ""));
}

Result<void> check_interpreter(const std::string& program) {
  const std::string interpreter = interpreter_in(first_line(program));
  if (interpreter.empty()) return {};
  struct stat status = {};
  if (::stat(interpreter.c_str(), &status) != 0) return exec_error(program, errno);
  const bool can_run = S_ISREG(status.st_mode) && ::access(interpreter.c_str(), X_OK) == 0;
  return can_run ? Result<void>() : exec_error(program, EACCES);
}

Error spawn_error(const std::string& program, const SpawnFailure& failure) {
  const std::string cannot = "cannot run " + program + ": ";
  switch (failure.stage) {
    case SpawnStage::kExec:
      break;
    case SpawnStage::kDescriptors:
      return system_refused(cannot + "its descriptors cannot be set up", failure.error);
    case SpawnStage::kSession:
      return system_refused(cannot + "it cannot get its own session", failure.error);
    case SpawnStage::kAffinity:
      return system_refused(cannot + "it cannot be bound to its CPUs", failure.error);
    case SpawnStage::kParentGone:
      return {ErrorKind::kSystem, cannot + "ddprun has exited meanwhile"};
  }
  return exec_error(program, failure.error);
}

Error system_refused(const std::string& what, int error) {
  std::string hint;
  if (error == EMFILE) hint = "; raise the limit on open files (ulimit -n)";
  if (error == ENFILE) hint = "; the machine is out of open files (fs.file-max)";
  if (error == EAGAIN)
    hint = "; raise the limit on processes (ulimit -u, or pids.max of the cgroup)";
  if (error == ENOMEM) hint = "; the machine is out of memory";
  return {ErrorKind::kSystem, what + ": " + ::strerror(error) + hint};
}

}  // namespace ddprun

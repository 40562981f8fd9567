#include "agent/proc/spawn_error.hpp"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "agent/proc/directory.hpp"

namespace ddprun {
namespace {

// The first line of a file, as much of it as the kernel looks at; empty for a FIFO or a device.
std::string first_line(const std::string& program) {
  std::array<char, 256> text{};
  const int file = open_regular_file(program, 0);
  if (file < 0) return {};
  const ssize_t bytes = ::read(file, text.data(), text.size());
  ::close(file);
  const std::string_view whole(text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  return std::string(whole.substr(0, whole.find('\n')));
}

// The interpreter after #! in the first line of a script as the kernel reads it, without arguments;
// empty for any other file.
std::string interpreter_as_written(const std::string& program) {
  std::string line = first_line(program);
  if (!line.starts_with("#!")) return {};
  line = line.substr(2);
  const auto begin = line.find_first_not_of(" \t");
  if (begin == std::string::npos) return {};
  return line.substr(begin, line.find_first_of(" \t", begin) - begin);
}

// The same without the end of a line of Windows.
std::string interpreter_of(const std::string& program) {
  std::string interpreter = interpreter_as_written(program);
  if (interpreter.ends_with('\r')) interpreter.pop_back();
  return interpreter;
}

std::string cannot_run(const std::string& program) {
  return "cannot run " + program + ": ";
}

Error missing(const std::string& program) {
  const std::string interpreter = interpreter_of(program);
  if (!interpreter.empty()) {
    const std::string hint = first_line(program).ends_with('\r')
                                 ? "; the file has Windows line ends: convert it with dos2unix"
                                 : "; install it or fix the first line of the file";
    return {ErrorKind::kNotFound, cannot_run(program) + "its interpreter " + interpreter +
                                      " (first line of the file) does not exist" + hint};
  }
  if (::access(program.c_str(), F_OK) == 0) {
    return {ErrorKind::kNotFound,
            cannot_run(program) +
                "the loader it was linked for does not exist; is it built for this system?"};
  }
  return {ErrorKind::kNotFound, cannot_run(program) + "there is no such file"};
}

Error forbidden(const std::string& program) {
  if (::access(program.c_str(), F_OK) != 0 && errno == EACCES) {
    return {ErrorKind::kNotExecutable,
            cannot_run(program) + "permission denied for a folder in its path"};
  }
  struct stat status = {};
  if (::stat(program.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return {ErrorKind::kNotExecutable, cannot_run(program) + "it is not a regular file"};
  }
  if (::access(program.c_str(), X_OK) == 0) {
    const std::string interpreter = interpreter_of(program);
    if (!interpreter.empty()) {
      return {ErrorKind::kNotExecutable,
              cannot_run(program) + "its interpreter " + interpreter + " is not executable"};
    }
    return {ErrorKind::kNotExecutable,
            cannot_run(program) + "permission denied; is its file system mounted noexec?"};
  }
  return {ErrorKind::kNotExecutable,
          cannot_run(program) + "it is not executable; try chmod +x on it"};
}

}  // namespace

Error exec_error(const std::string& program, int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return missing(program);
    case EACCES:
    case EPERM:
      return forbidden(program);
    case ENOEXEC:
      return {ErrorKind::kNotExecutable,
              cannot_run(program) +
                  "it is neither a program for this machine nor a script whose first line "
                  "names an interpreter (#!)"};
    case E2BIG:
      return {ErrorKind::kSystem,
              cannot_run(program) + "its arguments and environment are too long for the kernel"};
    default:
      return {ErrorKind::kNotExecutable, cannot_run(program) + ::strerror(error)};
  }
}

Result<void> check_interpreter(const std::string& program) {
  const std::string interpreter = interpreter_as_written(program);
  if (interpreter.empty()) return {};
  struct stat status = {};
  if (::stat(interpreter.c_str(), &status) != 0) return exec_error(program, errno);
  const bool can_run = S_ISREG(status.st_mode) && ::access(interpreter.c_str(), X_OK) == 0;
  return can_run ? Result<void>() : exec_error(program, EACCES);
}

Error spawn_error(const std::string& program, const SpawnFailure& failure) {
  switch (failure.stage) {
    case SpawnStage::kExec:
      return exec_error(program, failure.error);
    case SpawnStage::kDescriptors:
      return system_refused(cannot_run(program) + "its descriptors cannot be set up",
                            failure.error);
    case SpawnStage::kSession:
      return system_refused(cannot_run(program) + "it cannot get its own session", failure.error);
    case SpawnStage::kAffinity:
      return system_refused(cannot_run(program) + "it cannot be bound to its CPUs", failure.error);
    case SpawnStage::kParentGone:
      return {ErrorKind::kSystem, cannot_run(program) + "ddprun has exited meanwhile"};
  }
  return {ErrorKind::kSystem, cannot_run(program) + "unknown reason"};
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

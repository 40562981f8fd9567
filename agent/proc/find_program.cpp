#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "agent/proc/spawn.hpp"
#include "agent/proc/spawn_error.hpp"

namespace ddprun {
namespace {

namespace fs = std::filesystem;

enum class Found { kNothing, kNotExecutable, kDirectory, kProgram };

Found look_at(const std::string& path) {
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

Error directory_error(const std::string& path) {
  return {ErrorKind::kNotExecutable, "cannot run " + path + ": it is a directory"};
}

}  // namespace

Result<std::string> find_program(const std::string& name, const std::string& path) {
  if (name.empty()) return Error{ErrorKind::kNotFound, "cannot run a program without a name"};
  if (name.find('/') != std::string::npos) {
    switch (look_at(name)) {
      case Found::kProgram:
        return absolute(name);
      case Found::kDirectory:
        return directory_error(name);
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
    const Found found = look_at(candidate);
    if (found == Found::kProgram) return absolute(candidate);
    if (found == Found::kNotExecutable && refused.empty()) refused = candidate;
  }
  if (!refused.empty()) return exec_error(refused, EACCES);
  const bool here = look_at(name) != Found::kNothing;
  const std::string hint = here ? "; there is one in the working directory: try ./" + name : "";
  return Error{ErrorKind::kNotFound, "cannot run " + name + ": not found in PATH" + hint};
}

Result<void> find_script(const std::string& path) {
  if (path.empty()) return {};
  struct stat status = {};
  const bool missing = ::stat(path.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR);
  if (!missing) return {};
  std::error_code unknown;
  const std::string folder = fs::current_path(unknown).string();
  const bool relative = !path.starts_with('/') && !unknown;
  return Error{ErrorKind::kNoScript, "cannot run " + path + ": there is no such file" +
                                         (relative ? " in " + folder : "")};
}

}  // namespace ddprun

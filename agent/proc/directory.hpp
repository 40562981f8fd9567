// Directory: an open directory in which things are made by name, so that renaming a
// directory on the way to it does not lead them elsewhere. Thread rule: none. Ownership: owns the
// descriptor. Errors: errno values, 0 for success.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"

namespace ddprun {

class Directory {
 public:
  Directory() = default;
  Directory(Directory&& other) noexcept;
  Directory& operator=(Directory&& other) noexcept;
  ~Directory();

  /// Opens `path`, which the operator named: symbolic links are followed.
  [[nodiscard]] int open(const std::string& path);
  /// Makes `name` in `parent` and opens it. EEXIST when something is there, EPERM when what is
  /// there by the time it is opened is not what was made.
  [[nodiscard]] int make_in(const Directory& parent, const std::string& name, mode_t mode);
  /// Opens `name` of `parent`, which must not be a symbolic link.
  [[nodiscard]] int open_in(const Directory& parent, const std::string& name);
  /// Creates `name`, which must not be there, for writing; -1 with errno.
  [[nodiscard]] int create_file(const std::string& name, int flags) const;

  [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }
  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Whether this process is the machine's root's and the directory is not.
  [[nodiscard]] bool is_foreign_to_root() const;
  /// The sentence for that.
  [[nodiscard]] std::string foreign_sentence() const;

 private:
  int descriptor_ = -1;
  std::string path_;
};

/// Opens a regular file for reading; -1 for anything else, such as a FIFO, whose writer would be
/// waited for. `flags`: O_NOFOLLOW for what another process made.
[[nodiscard]] int open_regular_file(const std::string& path, int flags);

/// Eight characters that cannot be guessed, for the name of something that must be new.
[[nodiscard]] std::string random_letters();

}  // namespace ddprun

// Files of others, read and left as a whole, and directories in which things are made by name.
// Blocks as long as the file system does. Thread rule: none.
#pragma once

#include <dirent.h>
#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "base/limits.hpp"
#include "base/result.hpp"

namespace ddprun {

/// Opens a regular file for reading; -1 for anything else, such as a FIFO, whose writer would be
/// waited for. `flags`: O_NOFOLLOW for what another process made.
[[nodiscard]] int open_regular_file(const std::string& path, int flags);

/// At most `bytes_max` bytes of an open file, from that offset on.
[[nodiscard]] std::string read_range(int descriptor, off_t from, std::size_t bytes_max);

/// The beginning of a file that never lets a reader wait, such as one of /proc; nothing, with
/// errno, when it cannot be opened.
[[nodiscard]] std::optional<std::string> read_beginning(const std::string& path,
                                                        std::size_t bytes_max);

/// The content of a regular file; of one longer than kErrorFileBytesMax so many of its first bytes
/// and, behind these, kErrorFileEndBytes of its last. Nothing when there is no such file, or it is
/// empty, or `path` is.
[[nodiscard]] std::optional<std::string> read_file(const std::string& path);

/// Leaves `text` at `path` for another process. A regular file is replaced as a whole, by a new one
/// that is renamed; a FIFO or a terminal gets the text if it takes it at once. Anything else, a
/// symbolic link or a disk, is left as it is. Fails with kSystem, the path and the reason.
[[nodiscard]] Result<void> leave_file(const std::string& path, const std::string& text);

/// Calls `visit` for everything in a directory but "." and "..", until that returns
/// false. False when the directory cannot be opened.
bool for_each_entry(const std::string& directory, const std::function<bool(const dirent&)>& visit);
/// The same for a directory that is open, which is closed.
bool for_each_entry(int directory, const std::function<bool(const dirent&)>& visit);

/// Eight characters that cannot be guessed, for the name of something that must be new.
[[nodiscard]] std::string random_letters();

/// An open directory: renaming a directory on the way to it does not lead what is made in it
/// elsewhere. Owns the descriptor. Errors: errno values, 0 for success.
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

}  // namespace ddprun

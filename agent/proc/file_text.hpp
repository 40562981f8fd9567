// file_text: small files as a whole. Blocks as long as the file system does. Thread rule: none.
#pragma once

#include <optional>
#include <string>

#include "base/limits.hpp"
#include "base/result.hpp"

namespace ddprun {

/// The content of a regular file; of one longer than kErrorFileBytesMax so many of its first bytes
/// and, behind these, kErrorFileEndBytes of its last. Nothing when there is no such file, or it is
/// empty, or `path` is.
[[nodiscard]] std::optional<std::string> read_file(const std::string& path);

/// Leaves `text` at `path` for another process. A regular file is replaced as a whole, by a new one
/// that is renamed; a FIFO or a terminal gets the text if it takes it at once. Anything else, a
/// symbolic link or a disk, is left as it is. Fails with kSystem, the path and the reason.
[[nodiscard]] Result<void> leave_file(const std::string& path, const std::string& text);

}  // namespace ddprun

// file_text: small files as a whole. Blocking, for files of this machine. Thread rule: none.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"

namespace ddprun {

/// The content, at most one byte more than kErrorFileBytesMax; nothing when there is no such file,
/// or it is empty, or `path` is.
[[nodiscard]] std::optional<std::string> read_file(const std::string& path);

/// Replaces the file at `path`. Fails with kSystem, the path and the reason.
[[nodiscard]] Result<void> write_file(const std::string& path, const std::string& text);

}  // namespace ddprun

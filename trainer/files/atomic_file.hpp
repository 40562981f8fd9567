// A file is either the old one or the new one, whatever happens in between: temporary name in the
// same folder, write, fsync, rename, fsync of the folder. A full disk or a kill leaves the old file
// as it was. Blocking; thread-safe for different paths. Errors: TrainerError with path and reason.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

namespace ddprun::trainer {

using Pieces = std::vector<std::span<const std::byte>>;

void write_file_atomically(const std::filesystem::path& path, const Pieces& pieces);

/// Removes temporary files of `path` that a killed writer left behind. Call when no other writer
/// can be active. Never throws: litter is no reason to fail.
void remove_abandoned_temporaries(const std::filesystem::path& path) noexcept;

/// mkdir -p, with a sentence when it fails.
void make_folder(const std::filesystem::path& folder);

}  // namespace ddprun::trainer

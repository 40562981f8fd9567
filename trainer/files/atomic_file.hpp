// Atomic file replacement: temporary file in the same folder, write, fsync, rename, fsync of the
// folder. A full disk or a kill leaves the old file unchanged. Blocking; thread-safe for different
// paths. Errors: TrainerError with path and reason.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

namespace ddprun::trainer {

using Pieces = std::vector<std::span<const std::byte>>;

void write_file_atomically(const std::filesystem::path& path, const Pieces& pieces);

/// Removes temporary files of `path` that a killed writer left behind. Call only while no other
/// writer is active. Never throws: a leftover temporary file is not an error.
void remove_abandoned_temporaries(const std::filesystem::path& path) noexcept;

/// Like mkdir -p; throws TrainerError on failure.
void make_folder(const std::filesystem::path& folder);

}  // namespace ddprun::trainer

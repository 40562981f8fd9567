// A file's bytes, read-only, through a mapping: ranks of one machine share one copy, and opening
// costs no reading. Files that the trainer reads are replaced by rename, never shortened in place;
// shortening one while it is mapped ends the reader with SIGBUS. Immutable, copyable, any thread.
// Errors: TrainerError.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace ddprun::trainer {

class MappedFile {
 public:
  /// Throws when the file is not there, not a regular file, or larger than `bytes_max`.
  MappedFile(const std::filesystem::path& path, std::size_t bytes_max);

  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_.get(), size_}; }
  /// Brings all of it into memory in one go, for readers that touch every page anyway: half the
  /// time of one fault after the other. Only a hint: what cannot be done at once happens on demand.
  void populate() const noexcept;
  /// Keeps the mapping alive.
  [[nodiscard]] std::shared_ptr<const void> owner() const { return data_; }

 private:
  std::shared_ptr<const std::byte> data_;
  std::size_t size_ = 0;
};

}  // namespace ddprun::trainer

// A file mapped read-only: ranks on one node share one copy, and opening it reads nothing. The
// trainer's files are replaced by rename and never truncated in place; truncating a mapped file
// kills the reader with SIGBUS. Immutable, copyable, thread-safe. Errors: TrainerError.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace ddprun::trainer {

class MappedFile {
 public:
  /// Throws if the file is missing, not a regular file, or larger than `bytes_max`.
  MappedFile(const std::filesystem::path& path, std::size_t bytes_max);

  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_.get(), size_}; }
  /// Populates the whole mapping, for readers that access every page anyway: twice as fast as one
  /// page fault at a time. Only a hint: remaining pages are loaded on demand.
  void populate() const noexcept;
  /// Keeps the mapping alive.
  [[nodiscard]] std::shared_ptr<const void> owner() const { return data_; }

 private:
  std::shared_ptr<const std::byte> data_;
  std::size_t size_ = 0;
};

}  // namespace ddprun::trainer

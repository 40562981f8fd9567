// An append-only file: each record is one write(2), so that a killed writer can truncate only the
// last record. Not thread-safe. Errors: TrainerError with path and reason.
#pragma once

#include <filesystem>
#include <string_view>

#include "trainer/files/descriptor.hpp"

namespace ddprun::trainer {

class AppendFile {
 public:
  /// Opens for appending; creates the file if it does not exist.
  explicit AppendFile(const std::filesystem::path& path);
  /// Appends the whole record, or throws TrainerError and appends nothing.
  void append(std::string_view record);
  [[nodiscard]] bool empty() const;

 private:
  void take_back(std::size_t bytes) const;

  std::filesystem::path path_;
  Descriptor descriptor_;
};

}  // namespace ddprun::trainer

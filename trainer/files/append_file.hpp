// A file that only grows: each record is one write(2), so a killed writer leaves whole records but
// perhaps the last. Not thread-safe. Errors: TrainerError with path and reason.
#pragma once

#include <filesystem>
#include <string_view>

#include "trainer/files/descriptor.hpp"

namespace ddprun::trainer {

class AppendFile {
 public:
  /// Opens for appending; makes the file if it is not there.
  explicit AppendFile(const std::filesystem::path& path);
  /// All of the record, or nothing and a TrainerError.
  void append(std::string_view record);
  [[nodiscard]] bool empty() const;

 private:
  void take_back(std::size_t bytes) const;

  std::filesystem::path path_;
  Descriptor descriptor_;
};

}  // namespace ddprun::trainer

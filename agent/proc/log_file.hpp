// LogFile: one file that output is appended to. A full disk never becomes a reason to stop
// training. Thread rule: one thread. Ownership: owns the descriptor. Errors: said once, through
// `warn`.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ddprun {

/// Shows one sentence to the operator.
using Warn = std::function<void(const std::string&)>;

class LogFile {
 public:
  /// Creates or truncates `path` (O_APPEND, CLOEXEC). Fails with kSystem, the path and the reason.
  [[nodiscard]] static Result<LogFile> open(const std::string& path);
  LogFile(LogFile&& other) noexcept;
  LogFile& operator=(LogFile&& other) noexcept;
  ~LogFile();

  /// Appends all of `bytes`. When the disk is full or broken the rest of them is lost, the first
  /// time with one sentence to `warn`; later calls try again.
  void append(std::string_view bytes, const Warn& warn);
  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  LogFile(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}

  int descriptor_;
  std::string path_;
  bool warned_ = false;
};

}  // namespace ddprun

// LogFile: one file that output is appended to. A full disk never becomes a reason to stop
// training. Thread rule: one thread. Ownership: owns the descriptor. Errors: said once, through
// `warn`.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "agent/proc/directory.hpp"
#include "base/result.hpp"

namespace ddprun {

/// Shows one sentence to the operator.
using Warn = std::function<void(const std::string&)>;

class LogFile {
 public:
  /// Creates or truncates `path` (O_APPEND, CLOEXEC). Fails with kSystem, the path and the reason.
  [[nodiscard]] static Result<LogFile> open(const std::string& path);
  /// Creates `name` in `directory`, where it must not be yet. Fails as open() does.
  [[nodiscard]] static Result<LogFile> create(const Directory& directory, const std::string& name);
  LogFile(LogFile&& other) noexcept;
  LogFile& operator=(LogFile&& other) noexcept;
  ~LogFile();

  /// Appends all of `bytes`. When the disk is full or broken the rest of them is lost, the first
  /// time with one sentence to `warn`; later calls try again.
  void append(std::string_view bytes, const Warn& warn);
  /// What is appended after this is lost.
  void close();
  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  LogFile(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}

  int descriptor_;
  std::string path_;
  bool warned_ = false;
};

}  // namespace ddprun

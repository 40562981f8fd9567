// LogFile: one file that output is appended to, by a DiskThread. A full disk never becomes a reason
// to stop training, and one that stalls holds up only the stream that fills the queue. Thread rule:
// made on any thread, used on the io_context's. Ownership: the descriptor lives as long as writes
// to it, and is closed on the DiskThread. Errors: reported once, through `warn`.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "agent/proc/files.hpp"
#include "base/result.hpp"
#include "net/disk_thread.hpp"

namespace ddprun {

/// Shows one sentence to the operator.
using Warn = std::function<void(const std::string&)>;

class LogFile {
 public:
  /// Creates or truncates `path` (O_APPEND, CLOEXEC); this may block. Fails with kSystem, the path
  /// and the reason.
  [[nodiscard]] static Result<LogFile> open(const std::string& path, const DiskThread& disk);
  /// Creates `name` in `directory`, where it must not be yet. Blocks and fails as open() does.
  [[nodiscard]] static Result<LogFile> create(const Directory& directory, const std::string& name,
                                              const DiskThread& disk);
  /// The same of a file that keeps what a LogRing keeps.
  [[nodiscard]] static Result<LogFile> create_ring(std::shared_ptr<const Directory> directory,
                                                   const std::string& name, std::uint64_t bytes_max,
                                                   const DiskThread& disk);

  /// Appends all of `bytes` asynchronously. If the disk is full or broken the rest of them is lost,
  /// the first time with one sentence to `warn`; later calls try again.
  void append(std::string_view bytes, const Warn& warn);
  /// What is appended may be lost at the end of a run: a stop does not wait for a disk that stalls.
  void may_be_lost();
  /// Whether bytes did not fit so far: the file lacks the end of what was appended, or its middle.
  [[nodiscard]] bool has_lost() const;
  /// Whether the caller should wait for room() before it appends more.
  [[nodiscard]] bool full() const;
  /// Completes when full() no longer holds: when the disk takes bytes again. Cancelling is safe.
  [[nodiscard]] boost::asio::awaitable<void> room();
  /// What is appended after this is lost.
  void close();
  [[nodiscard]] int descriptor() const;
  [[nodiscard]] const std::string& path() const;

 private:
  class Impl;
  explicit LogFile(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

  std::shared_ptr<Impl> impl_;
};

}  // namespace ddprun

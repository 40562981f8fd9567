// LogFile: one file that output is appended to, by a DiskThread. A full disk never becomes a reason
// to stop training, and one that stalls holds up only the stream that fills the queue. Thread rule:
// made on any thread, used on the io_context's. Ownership: the descriptor lives as long as writes
// to it, and is closed on the DiskThread. Errors: reported once, through `warn`.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/proc/files.hpp"
#include "base/result.hpp"
#include "net/disk_thread.hpp"

namespace ddprun {

/// What a log file keeps with --log-max: its first quarter in NAME, the last bytes in NAME.1 and
/// NAME.2, so that `less NAME*` shows them in order. Nothing is ever written twice: of the two, the
/// older one is replaced by the newer, and a line at the end of NAME says how many bytes are
/// missing behind it. Used on the thread of the log files; it blocks. Owns the descriptors. Errors:
/// errno; what was to be written is lost then.
class LogRing {
 public:
  /// `head` is NAME, empty and not opened with O_APPEND.
  LogRing(std::shared_ptr<const Directory> directory, std::string name, int head,
          std::uint64_t bytes_max);
  ~LogRing();
  LogRing(const LogRing&) = delete;
  LogRing& operator=(const LogRing&) = delete;

  /// Writes all of `bytes`. Files begin behind a newline, where there is one. Returns 0 or errno.
  [[nodiscard]] int write(std::string_view bytes);

 private:
  [[nodiscard]] int next_file();
  [[nodiscard]] int mark() const;
  [[nodiscard]] int fill(std::string_view& bytes);

  std::shared_ptr<const Directory> directory_;
  std::string name_;
  int head_;
  int file_;  // the one that is written: the head, NAME.1 or NAME.2
  std::uint64_t tail_bytes_max_;
  std::uint64_t room_;             // in that file
  std::uint64_t bytes_ = 0;        // in it
  std::uint64_t first_bytes_ = 0;  // in NAME.1, once NAME.2 is there
  std::uint64_t head_bytes_ = 0;   // once it is full
  std::uint64_t missing_ = 0;
  bool head_is_cut_ = false;  // it does not end in a newline
  bool ends_in_newline_ = true;
  int number_ = 0;  // of the file; 0: the head
};

/// Shows one sentence to the operator.
using Warn = std::function<void(const std::string&)>;

class LogFile : public std::enable_shared_from_this<LogFile> {
 public:
  /// Creates or truncates `path` (O_APPEND, CLOEXEC); this may block. Fails with kSystem, the path
  /// and the reason.
  [[nodiscard]] static Result<std::shared_ptr<LogFile>> open(const std::string& path,
                                                             const DiskThread& disk);
  /// Creates `name` in `directory`, where it must not be yet. Blocks and fails as open() does.
  [[nodiscard]] static Result<std::shared_ptr<LogFile>> create(const Directory& directory,
                                                               const std::string& name,
                                                               const DiskThread& disk);
  /// The same of a file that keeps what a LogRing keeps.
  [[nodiscard]] static Result<std::shared_ptr<LogFile>> create_ring(
      std::shared_ptr<const Directory> directory, const std::string& name, std::uint64_t bytes_max,
      const DiskThread& disk);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  /// Appends all of `bytes` asynchronously. If the disk is full or broken the rest of them is lost,
  /// the first time with one sentence to `warn`; later calls try again.
  void append(std::string_view bytes, const Warn& warn);
  /// What is appended may be lost at the end of a run: a stop does not wait for a disk that stalls.
  void may_be_lost() { kind_ = DiskThread::Kind::kOther; }
  /// Whether bytes did not fit so far: the file lacks the end of what was appended, or its middle.
  [[nodiscard]] bool has_lost() const { return lost_; }
  /// Whether the caller should wait for room() before it appends more.
  [[nodiscard]] bool full() const;
  /// Completes when full() no longer holds: when the disk takes bytes again. Cancelling is safe.
  [[nodiscard]] boost::asio::awaitable<void> room();
  /// What is appended after this is lost.
  void close();
  /// -1 with a limit: a worker that wrote there itself would know none.
  [[nodiscard]] int descriptor() const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  class Target;
  LogFile(std::shared_ptr<Target> target, std::string path, DiskThread disk);
  void write();
  void on_written(int error);
  void release();

  std::shared_ptr<Target> target_;
  std::string path_;
  DiskThread disk_;
  DiskThread::Kind kind_ = DiskThread::Kind::kWrite;
  std::string waiting_;
  std::size_t in_flight_ = 0;
  Warn warn_;
  bool lost_ = false;
  bool closed_ = false;
  std::optional<boost::asio::steady_timer> changed_;  // cancelled when something was written
};

}  // namespace ddprun

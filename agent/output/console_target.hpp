// ConsoleTarget: writes to a descriptor that other processes share, without blocking and without
// changing its file description: O_NONBLOCK there would break every process that uses it. Thread
// rule: the io_context's thread. Ownership: owns what it opens; the caller owns the descriptor.
#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/system/error_code.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "net/disk_thread.hpp"

namespace ddprun {

class ConsoleTarget {
 public:
  /// How the descriptor can be written.
  enum class Kind {
    kFile,      // may block for as long as its file system stalls: written by a DiskThread
    kDevice,    // never blocks: write()
    kReopened,  // FIFO, terminal: reopened with O_NONBLOCK
    kSocket,    // send(MSG_DONTWAIT)
    kShared,    // FIFO or terminal that cannot be reopened: small writes, only when ready
    kClosed,    // not writable
  };
  ConsoleTarget(const boost::asio::any_io_executor& executor, int descriptor);

  [[nodiscard]] Kind kind() const { return kind_; }
  /// Bytes taken, or -1 with errno; EAGAIN: async_writable() tells when to try again. A file takes
  /// all, in the background; the next write gives EAGAIN until it is there, and take_failure() says
  /// whether it is. kFreshLine: in a file, what others wrote there gets its newline first.
  enum class Begin { kAnywhere, kFreshLine };
  [[nodiscard]] ssize_t write(std::string_view bytes, Begin begin = Begin::kAnywhere);
  struct Failure {
    int error = 0;  // errno; 0: none
    std::string lost;
    bool cut = false;  // what was written before ends within a line
  };
  /// Of the last write to a file, once. Only when async_writable() has called back.
  [[nodiscard]] Failure take_failure();
  /// Calls back once when the console may accept more. Only for kinds that can return EAGAIN.
  void async_writable(std::function<void(const boost::system::error_code&)> callback);
  void close();

 private:
  [[nodiscard]] ssize_t hand_over(std::string_view bytes, Begin begin);
  void reopen();
  void watch_in_epoll();

  Kind kind_;
  int descriptor_;
  boost::asio::posix::stream_descriptor watched_;

  // The file's data in the background thread.
  struct Write {
    bool in_flight = false;
    Failure failure;
    bool mid_line = false;  // what was written so far ends within a line
    std::function<void(const boost::system::error_code&)> writable;
  };
  DiskThread disk_;
  std::shared_ptr<Write> write_ = std::make_shared<Write>();
};

/// Whether errno `error` means that there is no space now.
[[nodiscard]] bool full_disk(int error);

}  // namespace ddprun

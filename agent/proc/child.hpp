// Child: a process that spawn() started, watched through its pidfd. Passive: it never acts on its own.
// Thread rule: the io_context's thread. Ownership: holds the pidfd; the destructor neither blocks nor kills.
#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "base/exit_status.hpp"
#include "base/result.hpp"

namespace ddprun {

class Child {
 public:
  Child(boost::asio::any_io_executor executor, pid_t pid, int pidfd);

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Completes when the process has ended, without a poll. Before the pid is given back to the kernel,
  /// SIGKILL goes to what is left of its process group: the group id cannot have been re-used yet.
  [[nodiscard]] boost::asio::awaitable<Result<ExitStatus>> wait();
  /// Sends to the whole process group; nothing happens when it is gone.
  void signal_group(int signal_number) const;

 private:
  pid_t pid_;
  boost::asio::posix::stream_descriptor pidfd_;
};

}  // namespace ddprun

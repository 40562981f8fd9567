// ProcessGroup: what a worker left in its process group when it ended. None of it need be a child
// of ours; a pidfd reports the end of any process. Thread rule: the io_context's thread.
// Ownership: holds a pidfd for each process it watches; the destructor neither blocks nor kills.
//
// The kernel gives a number to no new process while any process is in the group of that number. So
// the number is safe as long as one that is known to be in the group lives, and that is looked at
// before every signal. A group that was empty unseen, while this process did not run, may have been
// followed by another of the same number: its leader, whose pid is that number, shows it.
#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <string>
#include <vector>

namespace ddprun {

class ProcessGroup {
 public:
  /// Of a leader that has just been reaped.
  ProcessGroup(boost::asio::any_io_executor executor, pid_t id);

  /// Whether anything but zombies is left; looks through /proc only where the kernel says that the
  /// group exists, so that a worker that left nothing costs one system call. What cannot be
  /// watched, because descriptors have run out, gets SIGKILL and counts as gone.
  [[nodiscard]] bool look();
  /// Completes when nothing is left, without a poll; look() has to be true before. A process that
  /// left the group is noticed at the next signal() and no longer waited for. No deadline: the
  /// caller owns the order to end it.
  [[nodiscard]] boost::asio::awaitable<void> wait_until_empty();
  /// To all; what was forked unseen gets it as soon as it is seen.
  void signal(int signal_number);
  /// The names of its live processes, the oldest first.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  using Pidfd = boost::asio::posix::stream_descriptor;
  struct Member {
    Pidfd end;
    pid_t pid;
  };

  [[nodiscard]] bool watch(pid_t member);
  [[nodiscard]] bool any_alive();

  boost::asio::any_io_executor executor_;
  pid_t id_;
  std::vector<Member> members_;
  int last_signal_ = 0;
};

}  // namespace ddprun

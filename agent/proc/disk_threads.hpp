// DiskThreads: the threads for the user's files, except for the consoles, which have their own. One
// thread for each place, because each may stall without the other. Thread rule: the io_context's
// thread. Ownership: the destructor abandons a job that is stuck.
#pragma once

#include "net/disk_thread.hpp"

namespace ddprun {

struct DiskThreads {
  explicit DiskThreads(const boost::asio::any_io_executor& executor)
      : logs(executor), error_file(executor) {}
  ~DiskThreads() {
    logs.abandon();
    error_file.abandon();
  }
  DiskThreads(const DiskThreads&) = delete;
  DiskThreads& operator=(const DiskThreads&) = delete;
  void hurry() {
    logs.hurry();
    error_file.hurry();
  }

  DiskThread logs;        // --log-dir or TMPDIR
  DiskThread error_file;  // TORCHELASTIC_ERROR_FILE
};

}  // namespace ddprun

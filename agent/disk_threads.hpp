// DiskThreads: the threads for paths of the user's other than the consoles, which have their own.
// Apart, because one may stall by itself. Thread rule: the io_context's thread. Ownership: what is
// stuck when this is destroyed is left behind.
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

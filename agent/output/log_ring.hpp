// LogRing: what a log file keeps with --log-max: its first quarter in NAME, the last bytes in
// NAME.1 and NAME.2, so that `less NAME*` shows them in order. Nothing is ever written twice: of
// the two, the older one is replaced by the newer, and a line at the end of NAME says how many
// bytes are missing behind it. Thread rule: one thread, that of the log files; it blocks.
// Ownership: owns the descriptors. Errors: errno; what was to be written is lost then.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "agent/proc/files.hpp"

namespace ddprun {

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

}  // namespace ddprun

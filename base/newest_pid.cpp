#include "base/newest_pid.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>

namespace ddprun {

// "0.20 0.18 0.12 1/80 11206\n": the last number.
pid_t newest_pid() {
  const int file = ::open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::array<char, 128> text{};
  const ssize_t bytes = ::read(file, text.data(), text.size());
  ::close(file);
  if (bytes <= 0) return 0;
  std::string_view line(text.data(), static_cast<std::size_t>(bytes));
  line.remove_prefix(line.rfind(' ') + 1);  // none: from the beginning
  pid_t pid = 0;
  std::from_chars(line.data(), line.data() + line.size(), pid);
  return pid;
}

}  // namespace ddprun

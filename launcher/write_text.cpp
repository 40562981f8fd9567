#include "launcher/write_text.hpp"

#include <errno.h>
#include <unistd.h>

namespace ddprun {

int write_text(int file, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(file, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    done += static_cast<std::size_t>(count);
  }
  return 0;
}

}  // namespace ddprun

#include "agent/output/terminal.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>

namespace ddprun {

// The worker's end is opened through ours: a container may not see its own devpts. It is not for
// reading: nothing is ever to be read there, and a worker that tries gets an error, not silence.
std::optional<Terminal::Pseudoterminal> Terminal::open_pseudoterminal(int label) {
  Pseudoterminal ends;
  ends.ours = ::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (ends.ours < 0) return std::nullopt;
  if (::unlockpt(ends.ours) == 0) {
    ends.workers = ::ioctl(ends.ours, TIOCGPTPEER, O_WRONLY | O_NOCTTY | O_CLOEXEC);
  }
  if (ends.workers < 0) {
    const int why = errno;
    ::close(ends.ours);
    errno = why;
    return std::nullopt;
  }
  set_modes(ends.workers);
  ours_.emplace(ends.ours, label);
  resize();
  return ends;
}

void Terminal::set_modes(int workers) const {
  termios modes = {};
  if (::tcgetattr(descriptor_, &modes) != 0 && ::tcgetattr(workers, &modes) != 0) return;
  modes.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  ::tcsetattr(workers, TCSANOW, &modes);
}

int Terminal::columns() const {
  winsize size = {};
  return ::ioctl(descriptor_, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void Terminal::resize() const {
  winsize size = {};
  if (::ioctl(descriptor_, TIOCGWINSZ, &size) != 0) return;
  const unsigned short columns = size.ws_col;
  for (const auto& [ours, label] : ours_) {
    size.ws_col = static_cast<unsigned short>(columns - std::min(label, columns / 2));
    ::ioctl(ours, TIOCSWINSZ, &size);
  }
}

}  // namespace ddprun

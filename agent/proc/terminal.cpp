#include "agent/proc/terminal.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

namespace ddprun {

// The worker's end is opened through ours: a container may not see its own devpts. It is not for
// reading: nothing is ever to be read there, and a worker that tries gets an error, not silence.
std::optional<Terminal::Pseudoterminal> Terminal::open_pseudoterminal() {
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
  ours_.insert(ends.ours);
  resize();
  return ends;
}

void Terminal::set_modes(int workers) const {
  termios modes = {};
  if (::tcgetattr(descriptor_, &modes) != 0 && ::tcgetattr(workers, &modes) != 0) return;
  modes.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  ::tcsetattr(workers, TCSANOW, &modes);
}

void Terminal::resize() const {
  winsize size = {};
  if (::ioctl(descriptor_, TIOCGWINSZ, &size) != 0) return;
  for (const int ours : ours_) ::ioctl(ours, TIOCSWINSZ, &size);
}

}  // namespace ddprun

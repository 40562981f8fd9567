#include "agent/output/console_target.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <string>
#include <utility>

#include "agent/output/log_file.hpp"

namespace ddprun {

namespace asio = boost::asio;

bool full_disk(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

namespace {

ConsoleTarget::Kind kind_of(int descriptor) {
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) return ConsoleTarget::Kind::kClosed;
  if (S_ISSOCK(status.st_mode)) return ConsoleTarget::Kind::kSocket;
  const bool terminal = S_ISCHR(status.st_mode) && ::isatty(descriptor) == 1;
  if (S_ISFIFO(status.st_mode) || terminal) return ConsoleTarget::Kind::kReopened;
  return S_ISCHR(status.st_mode) ? ConsoleTarget::Kind::kDevice : ConsoleTarget::Kind::kFile;
}

/// Whether the file ends within a line; workers may write there themselves.
bool ends_within_line(int descriptor) {
  struct stat status = {};
  const bool appends = (::fcntl(descriptor, F_GETFL) & O_APPEND) != 0;
  if (::fstat(descriptor, &status) != 0) return false;
  const off_t end = appends ? status.st_size : ::lseek(descriptor, 0, SEEK_CUR);
  // The caller's may be open for writing only.
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  const int file = end > 0 ? ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
  if (file < 0) return false;
  char last = '\n';
  const bool known = ::pread(file, &last, 1, end - 1) == 1;
  ::close(file);
  return known && last != '\n';
}

}  // namespace

ConsoleTarget::ConsoleTarget(const asio::any_io_executor& executor, int descriptor)
    : kind_(kind_of(descriptor)), descriptor_(descriptor), watched_(executor), disk_(executor) {
  if (kind_ == Kind::kReopened) reopen();
  if (kind_ == Kind::kSocket || kind_ == Kind::kShared) watch_in_epoll();
}

void ConsoleTarget::reopen() {
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor_);
  const int own = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (own < 0) {
    kind_ = errno == ENXIO ? Kind::kClosed : Kind::kShared;  // ENXIO: a FIFO without a reader
    return;
  }
  boost::system::error_code why;
  watched_.assign(own, why);
  if (!why) return;
  ::close(own);
  kind_ = Kind::kShared;
}

// Asio sets O_NONBLOCK on what it waits for. So it waits for an epoll instance that watches the
// descriptor.
void ConsoleTarget::watch_in_epoll() {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event = {};
  event.events = EPOLLOUT;
  boost::system::error_code why;
  if (epoll >= 0 && ::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor_, &event) == 0) {
    watched_.assign(epoll, why);
    if (!why) return;
  }
  if (epoll >= 0) ::close(epoll);
  kind_ = Kind::kDevice;  // out of descriptors: the last resort is a write that may block
}

ssize_t ConsoleTarget::write(std::string_view bytes, Begin begin) {
  switch (kind_) {
    case Kind::kFile:
      return hand_over(bytes, begin);
    case Kind::kDevice:
      return ::write(descriptor_, bytes.data(), bytes.size());
    case Kind::kReopened:
      return ::write(watched_.native_handle(), bytes.data(), bytes.size());
    case Kind::kSocket:
      return ::send(descriptor_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    case Kind::kShared: {
      pollfd ready = {descriptor_, POLLOUT, 0};
      if (::poll(&ready, 1, 0) == 1) return ::write(descriptor_, bytes.data(), bytes.size());
      errno = EAGAIN;
      return -1;
    }
    case Kind::kClosed:
      break;
  }
  errno = EPIPE;
  return -1;
}

ssize_t ConsoleTarget::hand_over(std::string_view bytes, Begin begin) {
  if (write_->in_flight) {
    errno = EAGAIN;
    return -1;
  }
  write_->in_flight = true;
  struct Job {
    std::string text;
    std::size_t written = 0;
    int error = 0;
  };
  const auto job = std::make_shared<Job>(Job{std::string(bytes)});
  const bool fresh = begin == Begin::kFreshLine && !bytes.starts_with('\n');
  disk_.post(
      [job, fresh, file = descriptor_] {
        if (fresh && ends_within_line(file)) job->text.insert(0, "\n");
        job->error = write_all(file, job->text, &job->written);
      },
      [job, write = write_] {
        write->in_flight = false;
        if (job->written > 0) write->mid_line = job->text[job->written - 1] != '\n';
        if (job->error != 0)
          write->failure = {job->error, job->text.substr(job->written), write->mid_line};
        const auto writable = std::exchange(write->writable, nullptr);
        if (writable) writable({});
      });
  return static_cast<ssize_t>(bytes.size());
}

ConsoleTarget::Failure ConsoleTarget::take_failure() {
  return std::exchange(write_->failure, {});
}

void ConsoleTarget::async_writable(std::function<void(const boost::system::error_code&)> callback) {
  if (kind_ == Kind::kFile) {
    if (!write_->in_flight)
      return asio::post(disk_.executor(), std::bind(callback, boost::system::error_code()));
    write_->writable = std::move(callback);
    return;
  }
  const auto what = kind_ == Kind::kReopened ? asio::posix::stream_descriptor::wait_write
                                             : asio::posix::stream_descriptor::wait_read;
  watched_.async_wait(what, std::move(callback));
}

void ConsoleTarget::close() {
  kind_ = Kind::kClosed;
  boost::system::error_code ignored;  // closing what is given up has no way to fail that matters
  watched_.close(ignored);
}

}  // namespace ddprun

#include "agent/output/log_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <cstddef>
#include <utility>

#include "agent/output/log_ring.hpp"
#include "agent/proc/program.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

// Output that waits for a log file: beyond it the pump of the stream waits, and so does the worker.
constexpr std::size_t kLogQueueBytesMax = 1024 * 1024;

Error cannot_write(const std::string& path, int error) {
  return system_refused("cannot write the log file " + path, error);
}

/// Closed by the last of its owners: the LogFile, or a write that is under way.
class Target {
 public:
  explicit Target(int opened) : descriptor_(opened) {}
  Target(int opened, std::shared_ptr<const Directory> directory, const std::string& name,
         std::uint64_t bytes_max)
      : ring_(std::in_place, std::move(directory), name, opened, bytes_max) {}
  ~Target() {
    if (!ring_) ::close(descriptor_);
  }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  /// Returns 0 or errno.
  int write(std::string_view bytes) {
    return ring_ ? ring_->write(bytes) : write_all(descriptor_, bytes);
  }
  /// -1 for a ring: a worker that wrote there itself would know no limit.
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
  std::optional<LogRing> ring_;
};

}  // namespace

class LogFile::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(std::shared_ptr<Target> target, std::string path, DiskThread disk)
      : target_(std::move(target)), path_(std::move(path)), disk_(std::move(disk)) {}

  ~Impl() {
    if (target_) disk_.drop(std::move(target_));
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void append(std::string_view bytes, const Warn& warn) {
    if (bytes.empty() || closed_) return;
    warn_ = warn;
    waiting_ += bytes;
    if (in_flight_ == 0) write();
  }

  void may_be_lost() { kind_ = DiskThread::Kind::kOther; }
  [[nodiscard]] bool has_lost() const { return lost_; }
  [[nodiscard]] bool full() const { return waiting_.size() + in_flight_ > kLogQueueBytesMax; }

  asio::awaitable<void> room() {
    const auto self = shared_from_this();
    const auto token = asio::as_tuple(asio::use_awaitable);
    while (full()) {
      if (!changed_) changed_.emplace(disk_.executor(), TimePoint::max());
      const auto [cancelled] = co_await changed_->async_wait(token);  // ended by the disk alone:
      static_cast<void>(cancelled);  // the worker waits for its log as if it wrote it itself
    }
  }

  void close() {
    closed_ = true;
    if (in_flight_ == 0) release();
  }

  [[nodiscard]] int descriptor() const { return target_ ? target_->descriptor() : -1; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  void write() {
    const auto error = std::make_shared<int>(0);
    in_flight_ = waiting_.size();
    disk_.post(
        [error, file = target_, text = std::exchange(waiting_, {})] { *error = file->write(text); },
        [self = shared_from_this(), error] { self->on_written(*error); }, kind_);
  }

  void on_written(int error) {
    in_flight_ = 0;
    if (error != 0 && !std::exchange(lost_, true) && warn_) {
      warn_("cannot write the log file " + path_ + ": " + ::strerror(error) +
            "; what does not fit is missing in the file");
    }
    if (!waiting_.empty()) {
      write();
    } else if (closed_) {
      release();
    }
    if (changed_) changed_->cancel();
  }

  // Closing writes what is left, on some file systems.
  void release() {
    if (!target_) return;
    const auto last = std::make_shared<std::shared_ptr<Target>>(std::move(target_));
    target_ = nullptr;
    disk_.post([last] { last->reset(); }, [] {});
  }

  std::shared_ptr<Target> target_;
  std::string path_;
  DiskThread disk_;
  DiskThread::Kind kind_ = DiskThread::Kind::kWrite;
  std::string waiting_;
  std::size_t in_flight_ = 0;
  Warn warn_;
  bool lost_ = false;
  bool closed_ = false;
  std::optional<asio::steady_timer> changed_;  // cancelled when something was written
};

Result<LogFile> LogFile::open(const std::string& path, const DiskThread& disk) {
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC;
  const int descriptor = ::open(path.c_str(), flags, 0666);
  if (descriptor < 0) return cannot_write(path, errno);
  return LogFile(std::make_shared<Impl>(std::make_shared<Target>(descriptor), path, disk));
}

Result<LogFile> LogFile::create(const Directory& directory, const std::string& name,
                                const DiskThread& disk) {
  const std::string path = directory.path() + "/" + name;
  const int descriptor = directory.create_file(name, O_APPEND);
  if (descriptor < 0) return cannot_write(path, errno);
  return LogFile(std::make_shared<Impl>(std::make_shared<Target>(descriptor), path, disk));
}

Result<LogFile> LogFile::create_ring(std::shared_ptr<const Directory> directory,
                                     const std::string& name, std::uint64_t bytes_max,
                                     const DiskThread& disk) {
  const std::string path = directory->path() + "/" + name;
  const int descriptor = directory->create_file(name, 0);
  if (descriptor < 0) return cannot_write(path, errno);
  auto target = std::make_shared<Target>(descriptor, std::move(directory), name, bytes_max);
  return LogFile(std::make_shared<Impl>(std::move(target), path, disk));
}

void LogFile::append(std::string_view bytes, const Warn& warn) {
  impl_->append(bytes, warn);
}

void LogFile::may_be_lost() {
  impl_->may_be_lost();
}

bool LogFile::has_lost() const {
  return impl_->has_lost();
}

bool LogFile::full() const {
  return impl_->full();
}

asio::awaitable<void> LogFile::room() {
  return impl_->room();
}

void LogFile::close() {
  impl_->close();
}

int LogFile::descriptor() const {
  return impl_->descriptor();
}

const std::string& LogFile::path() const {
  return impl_->path();
}

}  // namespace ddprun

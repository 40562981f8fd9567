#include "agent/output/log_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "agent/proc/program.hpp"
#include "base/descriptor.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

// Output that waits for a log file: beyond it the pump of the stream waits, and so does the worker.
constexpr std::size_t kLogQueueBytesMax = 1024 * 1024;
constexpr std::size_t kDigits = 15;  // always as many: the number is written again in its place

std::string fixed(std::uint64_t number) {
  const std::string text = std::to_string(number);
  return std::string(kDigits - std::min(kDigits, text.size()), ' ') + text;
}

int pwrite_all(int file, std::string_view bytes, std::uint64_t at) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(written));
    at += static_cast<std::uint64_t>(written);
  }
  return 0;
}

Error cannot_write(const std::string& path, int error) {
  return system_refused("cannot write the log file " + path, error);
}

}  // namespace

LogRing::LogRing(std::shared_ptr<const Directory> directory, std::string name, int head,
                 std::uint64_t bytes_max)
    : directory_(std::move(directory)),
      name_(std::move(name)),
      head_(head),
      file_(head),
      tail_bytes_max_(bytes_max / 8 * 3),
      room_(bytes_max / 4) {}

LogRing::~LogRing() {
  if (file_ != head_) ::close(file_);
  ::close(head_);
}

int LogRing::write(std::string_view bytes) {
  while (!bytes.empty()) {
    int error = room_ == 0 ? next_file() : 0;
    if (error == 0) error = fill(bytes);
    if (error != 0) return error;
  }
  return 0;
}

// What does not fit goes into the next file, from the last line that begins here.
int LogRing::fill(std::string_view& bytes) {
  std::size_t take = bytes.size();
  const bool is_full = take > room_;
  if (is_full) {
    const std::size_t newline = bytes.substr(0, room_).rfind('\n');
    take = newline == std::string_view::npos ? static_cast<std::size_t>(room_) : newline + 1;
  }
  std::size_t written = 0;
  const int error = write_all(file_, bytes.substr(0, take), &written);
  if (written != 0) ends_in_newline_ = bytes[written - 1] == '\n';
  bytes.remove_prefix(written);
  bytes_ += written;
  room_ = is_full && error == 0 ? 0 : room_ - written;
  return error;
}

int LogRing::next_file() {
  const int at = directory_->descriptor();
  const std::string first = name_ + ".1";
  const std::string second = name_ + ".2";
  int error = 0;
  if (number_ == 0) {
    head_bytes_ = bytes_;
    head_is_cut_ = !ends_in_newline_;
    error = mark();
  } else if (number_ == 2) {
    if (::renameat(at, second.c_str(), at, first.c_str()) != 0) return errno;
    missing_ += std::exchange(first_bytes_, bytes_);
    number_ = 1;
    error = mark();
  } else {
    first_bytes_ = bytes_;
  }
  const int opened = directory_->create_file(number_ == 0 ? first : second, 0);
  if (opened < 0) return errno;
  if (file_ != head_) ::close(file_);
  file_ = opened;
  number_ = number_ == 0 ? 1 : 2;
  room_ = tail_bytes_max_;
  bytes_ = 0;
  return error;
}

int LogRing::mark() const {
  const std::string line = (head_is_cut_ ? "\n" : "") + ("[ddprun: " + fixed(missing_)) +
                           " bytes are left out here (see --log-max); " + name_ + ".1 and " +
                           name_ + ".2 continue]\n";
  return pwrite_all(head_, line, head_bytes_);
}

/// Closed by the last of its owners: the LogFile, or a write that is under way.
class LogFile::Target {
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
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
  std::optional<LogRing> ring_;
};

Result<std::shared_ptr<LogFile>> LogFile::open(const std::string& path, const DiskThread& disk) {
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC;
  const int descriptor = ::open(path.c_str(), flags, 0666);
  if (descriptor < 0) return cannot_write(path, errno);
  return std::shared_ptr<LogFile>(new LogFile(std::make_shared<Target>(descriptor), path, disk));
}

Result<std::shared_ptr<LogFile>> LogFile::create(const Directory& directory,
                                                 const std::string& name, const DiskThread& disk) {
  const std::string path = directory.path() + "/" + name;
  const int descriptor = directory.create_file(name, O_APPEND);
  if (descriptor < 0) return cannot_write(path, errno);
  return std::shared_ptr<LogFile>(new LogFile(std::make_shared<Target>(descriptor), path, disk));
}

Result<std::shared_ptr<LogFile>> LogFile::create_ring(std::shared_ptr<const Directory> directory,
                                                      const std::string& name,
                                                      std::uint64_t bytes_max,
                                                      const DiskThread& disk) {
  const std::string path = directory->path() + "/" + name;
  const int descriptor = directory->create_file(name, 0);
  if (descriptor < 0) return cannot_write(path, errno);
  auto target = std::make_shared<Target>(descriptor, std::move(directory), name, bytes_max);
  return std::shared_ptr<LogFile>(new LogFile(std::move(target), path, disk));
}

LogFile::LogFile(std::shared_ptr<Target> target, std::string path, DiskThread disk)
    : target_(std::move(target)), path_(std::move(path)), disk_(std::move(disk)) {}

LogFile::~LogFile() {
  if (target_) disk_.drop(std::move(target_));
}

void LogFile::append(std::string_view bytes, const Warn& warn) {
  if (bytes.empty() || closed_) return;
  warn_ = warn;
  waiting_ += bytes;
  if (in_flight_ == 0) write();
}

bool LogFile::full() const {
  return waiting_.size() + in_flight_ > kLogQueueBytesMax;
}

asio::awaitable<void> LogFile::room() {
  const auto self = shared_from_this();
  const auto token = asio::as_tuple(asio::use_awaitable);
  while (full()) {
    if (!changed_) changed_.emplace(disk_.executor(), TimePoint::max());
    const auto [cancelled] = co_await changed_->async_wait(token);  // ended by the disk alone:
    static_cast<void>(cancelled);  // the worker waits for its log as if it wrote it itself
  }
}

void LogFile::close() {
  closed_ = true;
  if (in_flight_ == 0) release();
}

int LogFile::descriptor() const {
  return target_ ? target_->descriptor() : -1;
}

void LogFile::write() {
  const auto error = std::make_shared<int>(0);
  in_flight_ = waiting_.size();
  disk_.post(
      [error, file = target_, text = std::exchange(waiting_, {})] { *error = file->write(text); },
      [self = shared_from_this(), error] { self->on_written(*error); }, kind_);
}

void LogFile::on_written(int error) {
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
void LogFile::release() {
  if (!target_) return;
  const auto last = std::make_shared<std::shared_ptr<Target>>(std::move(target_));
  target_ = nullptr;
  disk_.post([last] { last->reset(); }, [] {});
}

}  // namespace ddprun

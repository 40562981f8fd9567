#include "agent/output/log_ring.hpp"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "net/disk_thread.hpp"

namespace ddprun {

namespace {

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

}  // namespace ddprun

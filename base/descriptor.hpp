// Descriptor closes a file descriptor; write_all() writes a whole text to one. Thread rule: any.
#pragma once

#include <errno.h>
#include <unistd.h>

#include <cstddef>
#include <string_view>
#include <utility>

namespace ddprun {

class Descriptor {
 public:
  /// Takes `number` over; negative: none.
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

/// Writes all of `bytes`, however long that takes. Returns 0 or errno; `written` gets the number of
/// bytes that were written in any case.
[[nodiscard]] inline int write_all(int descriptor, std::string_view bytes,
                                   std::size_t* written = nullptr) {
  std::size_t done = 0;
  int error = 0;
  while (error == 0 && done < bytes.size()) {
    const ssize_t count = ::write(descriptor, bytes.data() + done, bytes.size() - done);
    if (count >= 0) done += static_cast<std::size_t>(count);
    if (count < 0 && errno != EINTR) error = errno;
  }
  if (written != nullptr) *written = done;
  return error;
}

}  // namespace ddprun

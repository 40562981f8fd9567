// write_all: a whole text to a descriptor. Thread rule: any.
#pragma once

#include <errno.h>
#include <unistd.h>

#include <cstddef>
#include <string_view>

namespace ddprun {

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

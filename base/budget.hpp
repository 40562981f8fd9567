// Budget: the number of bytes that a server may hold, charged where they are allocated. Pure.
// Thread rule: one thread.
#pragma once

#include <cstddef>

#include "base/assert.hpp"

namespace ddprun {

class Budget {
 public:
  explicit Budget(std::size_t bytes_max) : max_(bytes_max) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  [[nodiscard]] bool allows(std::size_t bytes) const {
    return bytes <= max_ && used_ <= max_ - bytes;
  }
  [[nodiscard]] bool try_take(std::size_t bytes) {
    if (!allows(bytes)) return false;
    used_ += bytes;
    return true;
  }
  /// For small fixed amounts that must not fail; may exceed the maximum slightly.
  void take(std::size_t bytes) { used_ += bytes; }
  void give_back(std::size_t bytes) {
    DDPRUN_ASSERT(bytes <= used_);
    used_ -= bytes;
  }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  std::size_t max_;
  std::size_t used_ = 0;
};

}  // namespace ddprun

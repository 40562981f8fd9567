// Descriptors that are passed on to another process. No thread rule. Ownership: closes them when
// what they were sent or given to has them.
#pragma once

#include <unistd.h>

#include <vector>

namespace ddprun::warm {

class Descriptors {
 public:
  Descriptors() = default;
  ~Descriptors() {
    for (const int one : all_) ::close(one);
  }
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;
  int add(int one) {
    if (one >= 0) all_.push_back(one);
    failed_ = failed_ || one < 0;
    return one;
  }
  /// Whether one of them was none.
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] const std::vector<int>& all() const { return all_; }

 private:
  std::vector<int> all_;
  bool failed_ = false;
};

}  // namespace ddprun::warm

// DescriptorLimit: the soft limit on open descriptors of this process while it lives. A shell of an
// ordinary user has 1,024, which tests with many connections raise. Thread rule: one at a time.
#pragma once

#include <sys/resource.h>

namespace ddprun {

class DescriptorLimit {
 public:
  explicit DescriptorLimit(int soft) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit wanted = {static_cast<rlim_t>(soft), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &wanted);
  }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

 private:
  rlimit before_ = {};
};

}  // namespace ddprun

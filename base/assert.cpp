#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace ddprun {

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "ddprun: bug: assertion failed: %s at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace ddprun

// Whether a file is private enough for what other users may not read.
#pragma once

#include <sys/stat.h>

#include <string>

#include "base/result.hpp"

namespace ddprun {

/// Fails with kUsage if other users may access it. The sentence begins with `shown`; `what` the
/// file holds, "secret", is to be made again if they have.
[[nodiscard]] Result<void> refuse_exposed(const struct stat& file, const std::string& shown,
                                          const std::string& what);

}  // namespace ddprun

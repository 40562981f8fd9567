// The format of sizes in all messages. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace ddprun {

/// "512 B", "64 MiB", "479.8 GiB": at most one decimal, and none that is 0.
[[nodiscard]] std::string bytes_text(std::int64_t bytes);

}  // namespace ddprun

// The version of ddprun, from the top CMakeLists.txt.
#pragma once

namespace ddprun {
inline constexpr const char* kVersion = DDPRUN_VERSION;
}  // namespace ddprun

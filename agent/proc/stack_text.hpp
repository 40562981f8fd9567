// stack_text: reads what ddprun-stacks and `py-spy dump` print. Whatever stands there, the result
// is bounded. Pure, no thread rule.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/stacks.hpp"

namespace ddprun {

// Of one process; what is beyond them is left out.
inline constexpr std::size_t kStackThreadsMax = 64;
inline constexpr std::size_t kStackFramesMax = 64;

struct NativeStacks {
  std::vector<ThreadStack> threads{};
  std::string missing{};  // why some are missing; empty: none is
};
/// By pid.
[[nodiscard]] std::map<int, NativeStacks> parse_native_stacks(std::string_view text);

/// The main thread comes first.
[[nodiscard]] std::vector<ThreadStack> parse_python_stacks(std::string_view text);

}  // namespace ddprun

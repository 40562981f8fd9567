// What half of a round's agents say, so that no single one, by mistake or on purpose, decides.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/assert.hpp"

namespace ddprun::round {

/// The lower median of `values`, of which there is at least one.
template <typename T>
[[nodiscard]] T lower_median(std::vector<T> values) {
  DDPRUN_ASSERT(!values.empty());
  const auto half = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), half, values.end());
  return *half;
}

}  // namespace ddprun::round

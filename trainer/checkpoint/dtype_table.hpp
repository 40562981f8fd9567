// Names and sizes of safetensors' element types, for reader and writer. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "trainer/checkpoint/safetensors.hpp"

namespace ddprun::trainer {

[[nodiscard]] std::optional<DType> dtype_named(std::string_view name);
/// Bytes of a whole tensor; nothing when a size is negative or the product does not fit 64 bits.
[[nodiscard]] std::optional<std::uint64_t> tensor_bytes(DType type,
                                                        std::span<const std::int64_t> shape);

}  // namespace ddprun::trainer

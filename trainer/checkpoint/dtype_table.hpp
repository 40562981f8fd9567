// Names and sizes of the safetensors element types, for reader and writer. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "trainer/checkpoint/safetensors.hpp"

namespace ddprun::trainer {

[[nodiscard]] std::optional<DType> dtype_named(std::string_view name);
/// Size of a tensor in bytes; nullopt if a dimension is negative or the product overflows 64 bits.
[[nodiscard]] std::optional<std::uint64_t> tensor_bytes(DType type,
                                                        std::span<const std::int64_t> shape);

}  // namespace ddprun::trainer

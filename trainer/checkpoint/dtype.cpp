// Element types of safetensors (safetensors.hpp).
#include <algorithm>
#include <array>

#include "trainer/checkpoint/dtype_table.hpp"

namespace ddprun::trainer {
namespace {

struct Entry {
  DType type;
  const char* name;
  std::size_t bytes;
};

constexpr std::array<Entry, 15> kTypes{{
    {DType::kF64, "F64", 8},
    {DType::kI64, "I64", 8},
    {DType::kU64, "U64", 8},
    {DType::kF32, "F32", 4},
    {DType::kI32, "I32", 4},
    {DType::kU32, "U32", 4},
    {DType::kF16, "F16", 2},
    {DType::kBF16, "BF16", 2},
    {DType::kI16, "I16", 2},
    {DType::kU16, "U16", 2},
    {DType::kI8, "I8", 1},
    {DType::kU8, "U8", 1},
    {DType::kBool, "BOOL", 1},
    {DType::kF8E4M3, "F8_E4M3", 1},
    {DType::kF8E5M2, "F8_E5M2", 1},
}};

const Entry& entry_of(DType type) {
  return *std::find_if(kTypes.begin(), kTypes.end(),
                       [type](const Entry& e) { return e.type == type; });
}

}  // namespace

std::string dtype_name(DType type) {
  return entry_of(type).name;
}

std::size_t dtype_bytes(DType type) {
  return entry_of(type).bytes;
}

std::optional<DType> dtype_named(std::string_view name) {
  const auto found =
      std::find_if(kTypes.begin(), kTypes.end(), [name](const Entry& e) { return e.name == name; });
  if (found == kTypes.end()) return std::nullopt;
  return found->type;
}

std::optional<std::uint64_t> tensor_bytes(DType type, std::span<const std::int64_t> shape) {
  std::uint64_t bytes = dtype_bytes(type);
  for (const std::int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes)) {
      return std::nullopt;
    }
  }
  return bytes;
}

}  // namespace ddprun::trainer

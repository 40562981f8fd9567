// The safetensors format without torch: u64 little-endian header length, JSON header padded to 8
// bytes, raw data. The reader validates everything: a hostile file is refused with one sentence and
// bounded memory. Views do not own their bytes; SafetensorsFile owns a mapping. Immutable once
// open. Errors: TrainerError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ddprun::trainer {

enum class DType {
  kF64,
  kI64,
  kU64,
  kF32,
  kI32,
  kU32,
  kF16,
  kBF16,
  kI16,
  kU16,
  kI8,
  kU8,
  kBool,
  kF8E4M3,
  kF8E5M2
};
/// The name used in the file ("F32", "BF16", …), and the size of an element in bytes.
[[nodiscard]] std::string dtype_name(DType type);
[[nodiscard]] std::size_t dtype_bytes(DType type);

/// A non-owning view of a tensor in row-major order.
struct TensorView {
  std::string name;
  DType type = DType::kF32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

using Metadata = std::map<std::string, std::string>;

/// The header and the order of the data: wide elements first, so that every tensor is aligned;
/// otherwise in the given order. Throws TrainerError if a size does not match its shape, a name is
/// repeated, or the header exceeds the limit.
struct SafetensorsLayout {
  std::string head;                      // length, JSON, padding
  std::vector<const TensorView*> order;  // pointers to the given views
};
[[nodiscard]] SafetensorsLayout layout_safetensors(std::span<const TensorView> tensors,
                                                   const Metadata& metadata);

/// Parses a whole file in memory. The views point into `file`.
struct SafetensorsContent {
  std::vector<TensorView> tensors;  // in data order
  Metadata metadata;
};
/// `name` appears in error messages.
[[nodiscard]] SafetensorsContent parse_safetensors(std::span<const std::byte> file,
                                                   const std::string& name);

/// A file mapped read-only.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  [[nodiscard]] const std::vector<TensorView>& tensors() const { return content_.tensors; }
  [[nodiscard]] const Metadata& metadata() const { return content_.metadata; }
  /// The tensor named `name`; throws TrainerError if it does not exist.
  [[nodiscard]] const TensorView& tensor(const std::string& name) const;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::shared_ptr<const void> mapping_;
  SafetensorsContent content_;
};

/// Writes a file that any safetensors reader opens, atomically (trainer/files/atomic_file.hpp).
void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const Metadata& metadata);

}  // namespace ddprun::trainer

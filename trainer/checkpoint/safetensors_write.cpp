// The writing half of safetensors.hpp.
#include <algorithm>
#include <boost/json.hpp>
#include <set>

#include "trainer/checkpoint/dtype_table.hpp"
#include "trainer/checkpoint/safetensors.hpp"
#include "trainer/error.hpp"
#include "trainer/files/atomic_file.hpp"
#include "trainer/limits.hpp"

namespace ddprun::trainer {
namespace {

constexpr std::size_t kAlignment = 8;

void check_tensor(const TensorView& tensor, std::set<std::string>& names) {
  if (tensor.name == "__metadata__" || !names.insert(tensor.name).second) {
    throw TrainerError("safetensors: duplicate tensor name " + tensor.name);
  }
  const auto bytes = tensor_bytes(tensor.type, tensor.shape);
  if (!bytes || *bytes != tensor.bytes.size()) {
    throw TrainerError("safetensors: the bytes of " + tensor.name + " do not match its shape");
  }
}

boost::json::object entry_of(const TensorView& tensor, std::uint64_t begin) {
  boost::json::array shape(tensor.shape.begin(), tensor.shape.end());
  boost::json::array offsets{begin, begin + tensor.bytes.size()};
  boost::json::object entry;
  entry["dtype"] = dtype_name(tensor.type);
  entry["shape"] = std::move(shape);
  entry["data_offsets"] = std::move(offsets);
  return entry;
}

std::string length_prefix(std::uint64_t length) {
  std::string text;
  for (int i = 0; i < 8; ++i, length >>= 8U) text.push_back(static_cast<char>(length & 0xFFU));
  return text;
}

}  // namespace

SafetensorsLayout layout_safetensors(std::span<const TensorView> tensors,
                                     const Metadata& metadata) {
  SafetensorsLayout layout;
  std::set<std::string> names;
  for (const auto& tensor : tensors) {
    check_tensor(tensor, names);
    layout.order.push_back(&tensor);
  }
  std::stable_sort(layout.order.begin(), layout.order.end(), [](const auto* a, const auto* b) {
    return dtype_bytes(a->type) > dtype_bytes(b->type);
  });

  boost::json::object header;
  if (!metadata.empty()) {
    boost::json::object texts;
    for (const auto& [key, text] : metadata) texts[key] = text;
    header["__metadata__"] = std::move(texts);
  }
  std::uint64_t begin = 0;
  for (const auto* tensor : layout.order) {
    header[tensor->name] = entry_of(*tensor, begin);
    begin += tensor->bytes.size();
  }
  std::string json = boost::json::serialize(header);
  json.resize((json.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  if (json.size() > kHeaderBytesMax) {
    throw TrainerError("safetensors: the header has " + std::to_string(json.size()) +
                       " bytes, the limit is " + std::to_string(kHeaderBytesMax));
  }
  layout.head = length_prefix(json.size()) + json;
  return layout;
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const Metadata& metadata) {
  const SafetensorsLayout layout = layout_safetensors(tensors, metadata);
  Pieces pieces{std::as_bytes(std::span(layout.head))};
  for (const auto* tensor : layout.order) pieces.push_back(tensor->bytes);
  write_file_atomically(path, pieces);
}

}  // namespace ddprun::trainer

// The reading half of safetensors.hpp. Every number of the header is checked before it is used.
#include <algorithm>
#include <boost/json.hpp>
#include <optional>

#include "trainer/checkpoint/dtype_table.hpp"
#include "trainer/checkpoint/safetensors.hpp"
#include "trainer/error.hpp"
#include "trainer/files/mapped_file.hpp"
#include "trainer/limits.hpp"

namespace ddprun::trainer {
namespace {

namespace json = boost::json;

constexpr std::size_t kPrefixBytes = 8;
constexpr std::size_t kJsonDepthMax = 4;  // header, tensor, shape, plus one

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw TrainerError(name + " is not a usable safetensors file: " + why +
                     "; use another checkpoint");
}

std::uint64_t header_length(std::span<const std::byte> file, const std::string& name) {
  if (file.size() < kPrefixBytes)
    refuse(name, "it has only " + std::to_string(file.size()) + " bytes");
  std::uint64_t length = 0;
  for (std::size_t i = kPrefixBytes; i-- > 0;) {
    length = length << 8U | std::to_integer<std::uint64_t>(file[i]);
  }
  if (length > kHeaderBytesMax)
    refuse(name, "its header claims " + std::to_string(length) + " bytes");
  if (length > file.size() - kPrefixBytes) refuse(name, "it is truncated inside its header");
  return length;
}

json::object parse_header(std::span<const std::byte> bytes, const std::string& name) {
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = kJsonDepthMax;
  auto value =
      json::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, error, {}, options);
  if (error || !value.is_object()) refuse(name, "its header is not a JSON object");
  return std::move(value.get_object());
}

std::optional<std::uint64_t> natural(const json::value& value) {
  if (value.is_uint64()) return value.get_uint64();
  if (value.is_int64() && value.get_int64() >= 0)
    return static_cast<std::uint64_t>(value.get_int64());
  return std::nullopt;
}

std::vector<std::uint64_t> naturals(const json::object& entry, const char* key,
                                    const std::string& name) {
  const auto* list = entry.if_contains(key);
  if (list == nullptr || !list->is_array()) refuse(name, std::string("a tensor has no ") + key);
  if (list->get_array().size() > kDimensionsMax)
    refuse(name, std::string("a tensor's ") + key + " is too long");
  std::vector<std::uint64_t> numbers;
  for (const auto& item : list->get_array()) {
    const auto number = natural(item);
    if (!number || *number > kCheckpointBytesMax)
      refuse(name, std::string("a tensor's ") + key + " is invalid");
    numbers.push_back(*number);
  }
  return numbers;
}

/// One tensor of the header, its offsets checked against the data.
TensorView view_of(const json::key_value_pair& item, std::span<const std::byte> data,
                   const std::string& name) {
  const std::string tensor(item.key());
  const std::string where = name + ", tensor " + tensor;
  if (!item.value().is_object()) refuse(where, "its entry is not an object");
  const json::object& entry = item.value().get_object();
  const auto* type_name = entry.if_contains("dtype");
  if (type_name == nullptr || !type_name->is_string()) refuse(where, "it has no dtype");
  const auto type =
      dtype_named(std::string_view(type_name->get_string().data(), type_name->get_string().size()));
  if (!type) refuse(where, "its dtype is unknown");

  const auto offsets = naturals(entry, "data_offsets", where);
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data.size()) {
    refuse(where, "its data lies outside the file");
  }
  const auto shape = naturals(entry, "shape", where);
  TensorView view{tensor,
                  *type,
                  {shape.begin(), shape.end()},
                  data.subspan(offsets[0], offsets[1] - offsets[0])};
  if (tensor_bytes(*type, view.shape) != view.bytes.size()) {
    refuse(where, "its shape does not match its data");
  }
  return view;
}

Metadata metadata_of(const json::value& value, const std::string& name) {
  if (!value.is_object()) refuse(name, "its metadata is not an object");
  Metadata metadata;
  for (const auto& item : value.get_object()) {
    if (!item.value().is_string())
      refuse(name, "its metadata contains a value that is not a string");
    metadata[std::string(item.key())] = std::string(item.value().get_string());
  }
  return metadata;
}

/// The tensors must cover the data without gaps or overlaps.
void check_cover(const std::vector<TensorView>& tensors, std::span<const std::byte> data,
                 const std::string& name) {
  const std::byte* expected = data.data();
  for (const auto& tensor : tensors) {
    if (tensor.bytes.data() != expected) refuse(name, "its tensors overlap or leave a gap");
    expected += tensor.bytes.size();
  }
  if (expected != data.data() + data.size()) {
    refuse(name, "it is truncated, or bytes follow its last tensor");
  }
}

}  // namespace

SafetensorsContent parse_safetensors(std::span<const std::byte> file, const std::string& name) {
  const std::uint64_t length = header_length(file, name);
  const auto data = file.subspan(kPrefixBytes + length);
  const json::object header = parse_header(file.subspan(kPrefixBytes, length), name);
  if (header.size() > kTensorsMax) refuse(name, "it has too many tensors");
  SafetensorsContent content;
  for (const auto& item : header) {
    if (item.key() == "__metadata__") {
      content.metadata = metadata_of(item.value(), name);
    } else {
      content.tensors.push_back(view_of(item, data, name));
    }
  }
  std::stable_sort(content.tensors.begin(), content.tensors.end(),
                   [](const auto& a, const auto& b) {
                     return a.bytes.data() != b.bytes.data() ? a.bytes.data() < b.bytes.data()
                                                             : a.bytes.size() < b.bytes.size();
                   });
  check_cover(content.tensors, data, name);
  return content;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path) {
  const MappedFile file(path, kCheckpointBytesMax);
  mapping_ = file.owner();
  content_ = parse_safetensors(file.bytes(), path.string());
}

const TensorView& SafetensorsFile::tensor(const std::string& name) const {
  const auto found =
      std::find_if(content_.tensors.begin(), content_.tensors.end(),
                   [&name](const TensorView& tensor) { return tensor.name == name; });
  if (found == content_.tensors.end()) {
    throw TrainerError(path_.string() + " has no tensor " + name + "; it belongs to another model");
  }
  return *found;
}

}  // namespace ddprun::trainer

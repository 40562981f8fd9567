// No header of a safetensors file makes the reader access memory outside the file. The input is the
// JSON header up to its last brace, then the data; the length field is added here.
#include <string>

#include "tests/fuzz/target.hpp"
#include "trainer/checkpoint/safetensors.hpp"
#include "trainer/error.hpp"

using namespace ddprun::trainer;

namespace {

void check(const SafetensorsContent& content, std::span<const std::byte> file) {
  const std::byte* expected = nullptr;
  for (const auto& tensor : content.tensors) {
    const bool inside = tensor.bytes.data() >= file.data() &&
                        tensor.bytes.data() + tensor.bytes.size() <= file.data() + file.size();
    const bool adjacent = expected == nullptr || tensor.bytes.data() == expected;
    std::uint64_t bytes = dtype_bytes(tensor.type);
    for (const auto size : tensor.shape) bytes *= static_cast<std::uint64_t>(size);
    DDPRUN_ASSERT(inside && adjacent && bytes == tensor.bytes.size());
    expected = tensor.bytes.data() + tensor.bytes.size();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::size_t header = text.rfind('}') + 1;  // npos + 1 is 0: no header at all
  std::string file;
  for (std::size_t i = 0, length = header; i < 8; ++i, length >>= 8U) {
    file.push_back(static_cast<char>(length & 0xFFU));
  }
  const std::string whole = file + text;
  const auto bytes = std::as_bytes(std::span(whole));
  try {
    check(parse_safetensors(bytes, "input"), bytes);
  } catch (const TrainerError&) {
    return 0;  // refused with a sentence: as it should be
  }
  return 0;
}

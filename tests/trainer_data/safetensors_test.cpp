#include "trainer/checkpoint/safetensors.hpp"

#include <array>

#include "tests/support/catch.hpp"
#include "tests/trainer_data/temporary_folder.hpp"
#include "trainer/error.hpp"
#include "trainer/limits.hpp"

using namespace ddprun::trainer;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// A file with the given header and data, and the right length.
std::string file_with(const std::string& header, const std::string& data) {
  std::string file;
  for (std::size_t i = 0, length = header.size(); i < 8; ++i, length >>= 8U) {
    file.push_back(static_cast<char>(length & 0xFFU));
  }
  return file + header + data;
}

std::string one_tensor(const std::string& fields) {
  return file_with("{\"t\":{" + fields + "}}", "12345678");
}

void check_refused(const std::string& file, const std::string& why) {
  INFO(file.substr(0, 200));
  CHECK_THROWS_WITH(parse_safetensors(bytes_of(file), "some.file"),
                    ContainsSubstring("some.file") && ContainsSubstring(why));
}

const std::string kGood = "\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]";

}  // namespace

TEST_CASE("a written file round-trips: names, types, shapes, bytes, metadata") {
  const TemporaryFolder folder;
  const std::array<float, 6> weights{1, 2, 3, 4, 5, 6};
  const std::array<std::int64_t, 1> step{-7};
  const std::array<std::uint8_t, 3> flags{1, 0, 1};
  const std::vector<TensorView> tensors{
      {"flags", DType::kBool, {3}, std::as_bytes(std::span(flags))},
      {"layer.\"weight\"\n", DType::kF32, {2, 3}, std::as_bytes(std::span(weights))},
      {"empty", DType::kF16, {0, 5}, {}},
      {"step", DType::kI64, {}, std::as_bytes(std::span(step))}};
  const Metadata metadata{{"format", "pt"}, {"note", "ü \\ \"quoted\""}};
  write_safetensors(folder / "a.safetensors", tensors, metadata);

  const SafetensorsFile file(folder / "a.safetensors");
  CHECK(file.metadata() == metadata);
  REQUIRE(file.tensors().size() == 4);
  for (const auto& tensor : tensors) {
    const TensorView& read = file.tensor(tensor.name);
    CHECK(read.type == tensor.type);
    CHECK(read.shape == tensor.shape);
    REQUIRE(read.bytes.size() == tensor.bytes.size());
    CHECK(std::equal(read.bytes.begin(), read.bytes.end(), tensor.bytes.begin()));
  }
  CHECK_THROWS_WITH(file.tensor("absent"), ContainsSubstring("has no tensor absent"));
}

TEST_CASE(
    "data starts at a multiple of 8 with wide elements first, so that all tensors are aligned") {
  const std::array<std::byte, 64> bytes{};
  const auto view = std::span<const std::byte>(bytes);
  const std::vector<TensorView> tensors{{"a", DType::kU8, {3}, view.first(3)},
                                        {"b", DType::kF32, {1}, view.first(4)},
                                        {"c", DType::kBF16, {5}, view.first(10)},
                                        {"d", DType::kF64, {1}, view.first(8)},
                                        {"e", DType::kF32, {2}, view.first(8)}};
  const auto layout = layout_safetensors(tensors, {});
  CHECK(layout.head.size() % 8 == 0);
  std::string order;
  for (const auto* tensor : layout.order) order += tensor->name;
  CHECK(order == "dbeca");
}

TEST_CASE("inconsistent tensors are not written") {
  const std::array<std::byte, 8> bytes{};
  const auto refused = [](std::vector<TensorView> tensors) {
    CHECK_THROWS_AS(layout_safetensors(tensors, {}), TrainerError);
  };
  refused({{"a", DType::kF32, {3}, bytes}});
  refused({{"a", DType::kF32, {-2}, bytes}});
  refused({{"a", DType::kF32, {1LL << 62, 4}, bytes}});
  refused({{"a", DType::kF32, {2}, bytes}, {"a", DType::kF32, {2}, bytes}});
  refused({{"__metadata__", DType::kF32, {2}, bytes}});
  CHECK_THROWS_WITH(layout_safetensors({}, {{"x", std::string(kHeaderBytesMax, 'x')}}),
                    ContainsSubstring("the limit is"));
}

TEST_CASE("a valid file of another writer is read, regardless of order and padding") {
  const std::string file = file_with(
      "{\"b\":{\"data_offsets\":[4,8],\"shape\":[4],\"dtype\":\"I8\"},"
      "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}    ",
      "12345678");
  const auto content = parse_safetensors(bytes_of(file), "f");
  REQUIRE(content.tensors.size() == 2);
  CHECK(content.tensors[0].name == "a");
  CHECK(content.tensors[1].name == "b");
  CHECK(std::to_integer<char>(content.tensors[1].bytes[0]) == '5');
  CHECK(parse_safetensors(bytes_of(file_with("{}", "")), "f").tensors.empty());
  CHECK(parse_safetensors(bytes_of(one_tensor(kGood)), "f").tensors.size() == 1);
}

TEST_CASE("a file truncated anywhere is refused") {
  const std::string whole = one_tensor(kGood);
  for (std::size_t size = 0; size < whole.size(); ++size) check_refused(whole.substr(0, size), "");
  check_refused(whole + "x", "bytes follow its last tensor");
}

TEST_CASE("headers with a wrong length are refused without being read") {
  std::string file = one_tensor(kGood);
  file[3] = '\x7F';
  check_refused(file, "its header claims");
  file = std::string(8, '\xFF');
  check_refused(file, "its header claims 18446744073709551615 bytes");
  check_refused("", "only 0 bytes");
}

TEST_CASE("malformed headers are refused") {
  check_refused(file_with("", ""), "not a JSON object");
  check_refused(file_with("[]", ""), "not a JSON object");
  check_refused(file_with("{\"t\":", ""), "not a JSON object");
  check_refused(file_with(std::string(100'000, '['), ""), "not a JSON object");
  check_refused(file_with("{\"t\":1}", ""), "not an object");
  check_refused(file_with("{\"t\":{}}", ""), "no dtype");
  check_refused(file_with("{\"__metadata__\":[]}", ""), "metadata is not an object");
  check_refused(file_with("{\"__metadata__\":{\"a\":1}}", ""), "not a string");
  check_refused(file_with("{\"\xff\":{}}", ""), "not a JSON object");
}

TEST_CASE("tensors that are out of bounds, overlap, leave gaps or overflow are refused") {
  const std::string type = "\"dtype\":\"F32\",";
  check_refused(one_tensor("\"dtype\":\"X9\",\"shape\":[2],\"data_offsets\":[0,8]"),
                "dtype is unknown");
  check_refused(one_tensor(type + "\"shape\":[2],\"data_offsets\":[0,9]"), "outside the file");
  check_refused(one_tensor(type + "\"shape\":[2],\"data_offsets\":[8,0]"), "outside the file");
  check_refused(one_tensor(type + "\"shape\":[2],\"data_offsets\":[0]"), "outside the file");
  check_refused(one_tensor(type + "\"shape\":[2],\"data_offsets\":[0,8,8]"), "outside the file");
  check_refused(one_tensor(type + "\"shape\":[2],\"data_offsets\":[-8,0]"), "is invalid");
  check_refused(one_tensor(type + "\"shape\":[2.0],\"data_offsets\":[0,8]"), "is invalid");
  check_refused(one_tensor(type + "\"shape\":[18446744073709551615],\"data_offsets\":[0,8]"),
                "is invalid");
  check_refused(one_tensor(type + "\"shape\":[68719476736,68719476736],\"data_offsets\":[0,8]"),
                "does not match");
  check_refused(one_tensor(type + "\"shape\":[3],\"data_offsets\":[0,8]"), "does not match");
  check_refused(one_tensor(type + "\"data_offsets\":[0,8]"), "no shape");
  check_refused(one_tensor(type + "\"shape\":[1],\"data_offsets\":[4,8]"), "leave a gap");
  check_refused(one_tensor(type + "\"shape\":[1],\"data_offsets\":[0,4]"), "bytes follow");
  check_refused(one_tensor(kGood + "},\"u\":{" + kGood), "overlap");
  std::string sizes = "1";
  for (std::size_t i = 0; i < kDimensionsMax; ++i) sizes += ",1";
  check_refused(one_tensor(type + "\"shape\":[" + sizes + "],\"data_offsets\":[0,4]"), "too long");
}

TEST_CASE("a file with any changed byte is read or refused, but never read beyond its end") {
  const std::string whole = file_with(
      "{\"__metadata__\":{\"k\":\"v\"},\"a\":{\"dtype\":\"F32\",\"shape\":[1,2],"
      "\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[8,11]}}",
      "12345678abc");
  int refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int bits = 1; bits < 256; bits += 7) {
      std::vector<char> changed(whole.begin(),
                                whole.end());  // exact size, so that a sanitizer detects overruns
      changed[at] = static_cast<char>(changed[at] ^ bits);
      try {
        const auto content = parse_safetensors(std::as_bytes(std::span(changed)), "f");
        std::size_t sum = 0;
        for (const auto& tensor : content.tensors) {
          for (const std::byte byte : tensor.bytes) sum += std::to_integer<std::size_t>(byte);
        }
        REQUIRE(sum > 0);
      } catch (const TrainerError&) {
        ++refused;
      }
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE("a missing file, or a folder, is one sentence") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(SafetensorsFile(folder / "absent"), ContainsSubstring("No such file"));
  CHECK_THROWS_WITH(SafetensorsFile(folder.path()), ContainsSubstring("not a regular file"));
}

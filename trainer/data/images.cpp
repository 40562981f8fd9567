#include "trainer/data/images.hpp"

#include <cstring>

#include "trainer/data/random.hpp"
#include "trainer/error.hpp"
#include "trainer/files/mapped_file.hpp"
#include "trainer/limits.hpp"

namespace ddprun::trainer {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kOfficialTrainingCount = 50'000;
constexpr std::uint32_t kOfficialTestCount = 10'000;

fs::path folder_with(const fs::path& folder, const char* file) {
  for (const fs::path& candidate : {folder, folder / "cifar-10-batches-bin"}) {
    std::error_code ignored;  // a missing folder means "no"
    if (fs::exists(candidate / file, ignored)) return candidate;
  }
  throw TrainerError("no " + std::string(file) + " in " + folder.string() +
                     "; download them with scripts/get-cifar10 " + folder.string() +
                     ", or use synthetic images with --generated");
}

void check_labels(const RecordBlock& block, const fs::path& file) {
  for (std::size_t i = 0; i < block.count; ++i) {
    const int label = block.records[i * kRecordBytes];
    if (label >= kClasses) {
      throw TrainerError(file.string() + ", record " + std::to_string(i) + ": label " +
                         std::to_string(label) +
                         " is above 9, so this is not CIFAR-10's binary layout; download it again");
    }
  }
}

}  // namespace

ImageSet::ImageSet(std::vector<RecordBlock> blocks) : blocks_(std::move(blocks)) {
  std::uint64_t total = 0;
  for (const auto& block : blocks_) total += block.count;
  if (total > kSamplesMax) throw TrainerError("more than 2^31 images are not supported");
  size_ = static_cast<std::uint32_t>(total);
}

void ImageSet::limit(std::uint32_t count) {
  size_ = std::min(size_, count);
}

void ImageSet::copy_pixels(std::span<std::uint8_t> out) const {
  if (out.size() != size_ * kImageBytes)
    throw TrainerError("copy_pixels: the buffer does not match the set");
  for (std::uint32_t id = 0; id < size_; ++id) {
    std::memcpy(&out[id * kImageBytes], record(id) + 1, kImageBytes);
  }
}

void ImageSet::copy_labels(std::span<std::int64_t> out) const {
  if (out.size() != size_) throw TrainerError("copy_labels: the buffer does not match the set");
  for (std::uint32_t id = 0; id < size_; ++id) out[id] = label(id);
}

const std::uint8_t* ImageSet::record(std::uint32_t id) const {
  std::size_t rest = id;
  for (const auto& block : blocks_) {  // five files: a binary search would be slower
    if (rest < block.count) return block.records + rest * kRecordBytes;
    rest -= block.count;
  }
  throw TrainerError("image " + std::to_string(id) + " does not exist; the set has " +
                     std::to_string(size_));
}

RecordBlock read_image_file(const fs::path& file) {
  const MappedFile mapping(file, kImageFileBytesMax);
  const auto bytes = mapping.bytes();
  if (bytes.empty()) throw TrainerError(file.string() + " is empty; download it again");
  const std::size_t remainder = bytes.size() % kRecordBytes;
  if (remainder != 0) {
    throw TrainerError(file.string() + ", record " + std::to_string(bytes.size() / kRecordBytes) +
                       ": only " + std::to_string(remainder) + " of its " +
                       std::to_string(kRecordBytes) +
                       " bytes are present; the file is truncated, download it again");
  }
  mapping.populate();
  RecordBlock block{mapping.owner(), reinterpret_cast<const std::uint8_t*>(bytes.data()),
                    bytes.size() / kRecordBytes};
  check_labels(block, file);
  return block;
}

ImageSet read_training_images(const fs::path& folder) {
  const fs::path found = folder_with(folder, "data_batch_1.bin");
  std::vector<RecordBlock> blocks;
  for (int i = 1; i <= 5; ++i) {
    blocks.push_back(read_image_file(found / ("data_batch_" + std::to_string(i) + ".bin")));
  }
  return ImageSet(std::move(blocks));
}

ImageSet read_test_images(const fs::path& folder) {
  return ImageSet({read_image_file(folder_with(folder, "test_batch.bin") / "test_batch.bin")});
}

DataSet load_data_set(const DataSetOptions& options) {
  DataSet data;
  if (options.generated) {
    const auto count_or = [](std::uint32_t limit, std::uint32_t all) {
      return limit == 0 ? all : limit;
    };
    data.train = generate_images({count_or(options.limit_train, kOfficialTrainingCount), 1});
    data.test = generate_images({count_or(options.limit_test, kOfficialTestCount), 2});
    data.source = "synthetic images";
    data.announcement =
        "THESE IMAGES ARE SYNTHETIC: ACCURACY ON THEM IS MEANINGLESS. "
        "Download the real ones with scripts/get-cifar10 DIR and pass --data-dir DIR.";
  } else {
    data.train = read_training_images(options.folder);
    data.test = read_test_images(options.folder);
    if (options.limit_train != 0) data.train.limit(options.limit_train);
    if (options.limit_test != 0) data.test.limit(options.limit_test);
    data.source = "images of " + options.folder.string();
  }
  data.source += ": " + std::to_string(data.train.size()) + " for training, " +
                 std::to_string(data.test.size()) + " for testing";
  return data;
}

}  // namespace ddprun::trainer

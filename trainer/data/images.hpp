// CIFAR-10 images as bytes: 32x32, red plane, green plane, blue plane, row-major; labels 0-9.
// Read from the official binary layout through mappings (ranks on one node share the page cache),
// or generated. A ImageSet is immutable and movable, and may be read from several threads.
// Errors: TrainerError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ddprun::trainer {

inline constexpr std::size_t kSide = 32;
inline constexpr std::size_t kPlaneBytes = kSide * kSide;
inline constexpr std::size_t kChannels = 3;
inline constexpr std::size_t kImageBytes = kChannels * kPlaneBytes;
inline constexpr std::size_t kRecordBytes = 1 + kImageBytes;  // the label precedes the image
inline constexpr int kClasses = 10;

using Image = std::span<const std::uint8_t, kImageBytes>;

/// Complete records, and the owner of their memory (a mapping or a buffer).
struct RecordBlock {
  std::shared_ptr<const void> owner;
  const std::uint8_t* records = nullptr;
  std::size_t count = 0;
};

class ImageSet {
 public:
  ImageSet() = default;
  /// Ids number the records across all blocks in order. The caller has validated the labels.
  explicit ImageSet(std::vector<RecordBlock> blocks);

  [[nodiscard]] std::uint32_t size() const { return size_; }
  /// id < size().
  [[nodiscard]] Image image(std::uint32_t id) const { return Image(record(id) + 1, kImageBytes); }
  [[nodiscard]] int label(std::uint32_t id) const { return record(id)[0]; }
  /// Keeps the first `count` images; no effect if there are fewer.
  void limit(std::uint32_t count);
  /// Copies all images (size() * kImageBytes bytes) and their labels (size() values), to upload
  /// the whole set to a device. Throws TrainerError if a span has a different length.
  void copy_pixels(std::span<std::uint8_t> out) const;
  void copy_labels(std::span<std::int64_t> out) const;

 private:
  [[nodiscard]] const std::uint8_t* record(std::uint32_t id) const;

  std::vector<RecordBlock> blocks_;
  std::uint32_t size_ = 0;
};

/// Reads one file in the official layout. The count follows from the file size; a truncated record,
/// an empty file or a label above 9 is refused, naming file and record.
[[nodiscard]] RecordBlock read_image_file(const std::filesystem::path& file);

/// Read data_batch_1.bin … data_batch_5.bin / test_batch.bin from `folder` or its subfolder
/// `cifar-10-batches-bin`.
[[nodiscard]] ImageSet read_training_images(const std::filesystem::path& folder);
[[nodiscard]] ImageSet read_test_images(const std::filesystem::path& folder);

/// Synthetic images of the same shape: colored stripes that depend on the class, plus noise; a
/// function of (seed, id). A model learns them at once, so accuracy on them is meaningless.
struct GeneratedOptions {
  std::uint32_t count = 0;
  std::uint64_t seed = 0;
};
[[nodiscard]] ImageSet generate_images(const GeneratedOptions& options);

/// The training and test set of a run. `announcement` is a prominent warning to the user, or empty.
struct DataSet {
  ImageSet train;
  ImageSet test;
  std::string source;        // one line: origin and size
  std::string announcement;  // for synthetic images: that accuracy is meaningless
};

struct DataSetOptions {
  std::filesystem::path folder;
  bool generated = false;
  std::uint32_t limit_train = 0;  // 0: all
  std::uint32_t limit_test = 0;
};
[[nodiscard]] DataSet load_data_set(const DataSetOptions& options);

}  // namespace ddprun::trainer

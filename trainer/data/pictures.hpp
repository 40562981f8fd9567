// CIFAR-10 pictures as bytes: 32x32, red plane, green plane, blue plane, row-major; labels 0-9.
// Read from the official binary layout through mappings (ranks of one machine share the page
// cache), or made up. A PictureSet is immutable and movable; reading it from several threads is
// fine. Errors: TrainerError.
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
inline constexpr std::size_t kPictureBytes = kChannels * kPlaneBytes;
inline constexpr std::size_t kRecordBytes = 1 + kPictureBytes;  // the label comes first
inline constexpr int kClasses = 10;

using Picture = std::span<const std::uint8_t, kPictureBytes>;

/// Bytes of whole records with whoever keeps them alive (a mapping or a buffer).
struct RecordBlock {
  std::shared_ptr<const void> owner;
  const std::uint8_t* records = nullptr;
  std::size_t count = 0;
};

class PictureSet {
 public:
  PictureSet() = default;
  /// Blocks in order; the ids run through them. Labels have been checked.
  explicit PictureSet(std::vector<RecordBlock> blocks);

  [[nodiscard]] std::uint32_t size() const { return size_; }
  /// id < size().
  [[nodiscard]] Picture picture(std::uint32_t id) const {
    return Picture(record(id) + 1, kPictureBytes);
  }
  [[nodiscard]] int label(std::uint32_t id) const { return record(id)[0]; }
  /// Keeps the first `count`; no effect when there are fewer.
  void limit(std::uint32_t count);
  /// All pictures one after the other (size() * kPictureBytes bytes) and their labels (size()
  /// values), to put the whole set on a device. Throws TrainerError when a span has another length.
  void copy_pixels(std::span<std::uint8_t> out) const;
  void copy_labels(std::span<std::int64_t> out) const;

 private:
  [[nodiscard]] const std::uint8_t* record(std::uint32_t id) const;

  std::vector<RecordBlock> blocks_;
  std::uint32_t size_ = 0;
};

/// Reads one file of the official layout. The count comes from its size; a remainder, an empty file
/// and a label above 9 are refused, naming file and record.
[[nodiscard]] RecordBlock read_picture_file(const std::filesystem::path& file);

/// data_batch_1.bin … data_batch_5.bin / test_batch.bin of `folder`, or of its
/// `cifar-10-batches-bin`.
[[nodiscard]] PictureSet read_training_pictures(const std::filesystem::path& folder);
[[nodiscard]] PictureSet read_test_pictures(const std::filesystem::path& folder);

/// Made-up pictures of the same shape: coloured stripes that depend on the class, plus noise; a
/// function of (seed, id). A model learns them at once, so accuracy on them means nothing.
struct GeneratedOptions {
  std::uint32_t count = 0;
  std::uint64_t seed = 0;
};
[[nodiscard]] PictureSet generate_pictures(const GeneratedOptions& options);

/// Both sets of a run. `announcement` is not empty when the user must be told something loudly.
struct DataSet {
  PictureSet train;
  PictureSet test;
  std::string source;        // one line: where they come from and how many
  std::string announcement;  // why accuracy means nothing, for made-up pictures
};

struct DataSetOptions {
  std::filesystem::path folder;
  bool generated = false;
  std::uint32_t limit_train = 0;  // 0: all
  std::uint32_t limit_test = 0;
};
[[nodiscard]] DataSet load_data_set(const DataSetOptions& options);

}  // namespace ddprun::trainer

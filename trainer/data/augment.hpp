// Augmentation as a pure function of (seed, epoch, sample id), and the routine that turns bytes
// into augmented, normalised floats. No generator state: a re-sharded or resumed run sees identical
// pixels. BatchWriter is immutable after construction; several threads may write into disjoint
// buffers.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "trainer/data/pictures.hpp"
#include "trainer/data/random.hpp"

namespace ddprun::trainer {

/// The classic 4 is for hundreds of epochs; in the short runs of this trainer it costs 5 points of
/// accuracy after one epoch (width 8: 55 % instead of 60 %).
inline constexpr int kCropPadding = 2;

/// Crop of the picture padded with black pixels on each side, then mirrored or not. Shift 0, 0 is
/// the picture itself; shift_x 2 shows it moved 2 columns to the left.
struct Augmentation {
  int shift_x = 0;  // -kCropPadding … kCropPadding
  int shift_y = 0;
  enum class Flip { kNo, kYes } flip = Flip::kNo;

  friend bool operator==(const Augmentation&, const Augmentation&) = default;
};

/// Shift from a hash of all three; flip = one bit of hash(seed, id) xor the parity of the epoch, so
/// that every picture is seen mirrored in exactly every other epoch ("alternating flip", Jordan
/// 2024).
[[nodiscard]] Augmentation augmentation_of(const EpochKey& key, std::uint32_t id);

enum class Layout { kNchw, kChannelsLast };

struct Normalization {
  std::array<float, kChannels> mean{0.4914F, 0.4822F, 0.4465F};
  std::array<float, kChannels> deviation{0.2470F, 0.2435F, 0.2616F};
};

class BatchWriter {
 public:
  BatchWriter(const Normalization& normalization, Layout layout);

  /// Writes the pictures `ids` of `set`, augmented for `key`, one after the other: out has
  /// ids.size() * kPictureBytes floats (TrainerError otherwise). kChannelsLast writes height,
  /// width, channel: the memory of a channels_last tensor of sizes {N, 3, 32, 32}.
  void write_augmented(const PictureSet& set, std::span<const std::uint32_t> ids,
                       const EpochKey& key, std::span<float> out) const;
  /// The same without augmentation, for evaluation.
  void write_plain(const PictureSet& set, std::span<const std::uint32_t> ids,
                   std::span<float> out) const;
  /// One picture; out has kPictureBytes floats.
  void write_one(Picture picture, const Augmentation& augmentation, std::span<float> out) const;

 private:
  void check_room(std::span<const std::uint32_t> ids, std::span<float> out) const;

  std::array<std::array<float, 256>, kChannels> value_of_;  // byte -> normalised float
  Layout layout_;
};

/// The labels of `ids`; out has ids.size() values (TrainerError otherwise).
void write_labels(const PictureSet& set, std::span<const std::uint32_t> ids,
                  std::span<std::int64_t> out);

}  // namespace ddprun::trainer

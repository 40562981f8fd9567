#include "trainer/data/augment.hpp"

#include <algorithm>
#include <string>

#include "trainer/error.hpp"

namespace ddprun::trainer {
namespace {

constexpr std::uint64_t kShiftSalt =
    0x736869667473U;  // makes shifts independent of flips and shuffling
constexpr std::uint64_t kFlipSalt = 0x666C697073U;

constexpr int kLast = static_cast<int>(kSide) - 1;

/// Position and stride of one plane in the output.
struct Stride {
  std::size_t row;
  std::size_t column;
};

/// Writes one color plane, shifted and mirrored; pixels from outside are `black`.
struct PlaneJob {
  const std::uint8_t* plane;
  const float* value_of;
  float* out;
  Stride stride;
};

void write_row(const PlaneJob& job, const Augmentation& augmentation, int y) {
  const int from_y = y + augmentation.shift_y;
  const bool inside = from_y >= 0 && from_y <= kLast;
  const std::uint8_t* row = inside ? job.plane + from_y * static_cast<int>(kSide) : nullptr;
  float* out = job.out + static_cast<std::size_t>(y) * job.stride.row;
  const bool mirrored = augmentation.flip == Augmentation::Flip::kYes;
  for (int x = 0; x <= kLast; ++x, out += job.stride.column) {
    const int from_x = (mirrored ? kLast - x : x) + augmentation.shift_x;
    const bool seen = inside && from_x >= 0 && from_x <= kLast;
    *out = job.value_of[seen ? row[from_x] : 0];
  }
}

}  // namespace

Augmentation augmentation_of(const EpochKey& key, std::uint32_t id) {
  constexpr std::uint32_t kShifts = 2 * kCropPadding + 1;
  CounterStream shifts(mix(key.stream() ^ mix(kShiftSalt + id)));
  Augmentation augmentation;
  augmentation.shift_x = static_cast<int>(shifts.below(kShifts)) - kCropPadding;
  augmentation.shift_y = static_cast<int>(shifts.below(kShifts)) - kCropPadding;
  const std::uint64_t coin = mix(mix(key.seed) ^ mix(kFlipSalt ^ (std::uint64_t{id} << 32U)));
  augmentation.flip =
      ((coin ^ key.epoch) & 1U) != 0 ? Augmentation::Flip::kYes : Augmentation::Flip::kNo;
  return augmentation;
}

BatchWriter::BatchWriter(const Normalization& normalization, Layout layout) : layout_(layout) {
  for (std::size_t channel = 0; channel < kChannels; ++channel) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      value_of_[channel][byte] = (static_cast<float>(byte) / 255.0F - normalization.mean[channel]) /
                                 normalization.deviation[channel];
    }
  }
}

void BatchWriter::write_augmented(const ImageSet& set, std::span<const std::uint32_t> ids,
                                  const EpochKey& key, std::span<float> out) const {
  check_room(ids, out);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    write_one(set.image(ids[i]), augmentation_of(key, ids[i]),
              out.subspan(i * kImageBytes, kImageBytes));
  }
}

void BatchWriter::write_plain(const ImageSet& set, std::span<const std::uint32_t> ids,
                              std::span<float> out) const {
  check_room(ids, out);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    write_one(set.image(ids[i]), Augmentation{}, out.subspan(i * kImageBytes, kImageBytes));
  }
}

void BatchWriter::write_one(Image image, const Augmentation& augmentation,
                            std::span<float> out) const {
  for (std::size_t channel = 0; channel < kChannels; ++channel) {
    const bool planes = layout_ == Layout::kNchw;
    const PlaneJob job{image.data() + channel * kPlaneBytes, value_of_[channel].data(),
                       out.data() + (planes ? channel * kPlaneBytes : channel),
                       planes ? Stride{kSide, 1} : Stride{kSide * kChannels, kChannels}};
    for (int y = 0; y <= kLast; ++y) write_row(job, augmentation, y);
  }
}

void BatchWriter::check_room(std::span<const std::uint32_t> ids, std::span<float> out) const {
  if (out.size() == ids.size() * kImageBytes) return;
  throw TrainerError("a buffer of " + std::to_string(out.size()) + " floats does not match " +
                     std::to_string(ids.size()) + " images");
}

void write_labels(const ImageSet& set, std::span<const std::uint32_t> ids,
                  std::span<std::int64_t> out) {
  if (out.size() != ids.size())
    throw TrainerError("write_labels: the buffer does not match the ids");
  std::transform(ids.begin(), ids.end(), out.begin(),
                 [&set](std::uint32_t id) { return std::int64_t{set.label(id)}; });
}

}  // namespace ddprun::trainer

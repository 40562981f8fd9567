#include <ATen/TensorIndexing.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>

#include <vector>

#include "trainer/train/batches.hpp"

namespace ddprun::trainer {

namespace {

// The source row (or column) of a crop in the padded image.
struct Places {
  std::vector<std::int64_t> rows, columns;

  void add(const Augmentation& augmentation) {
    const bool flipped = augmentation.flip == Augmentation::Flip::kYes;
    for (int i = 0; i < static_cast<int>(kSide); ++i) {
      const int column = flipped ? static_cast<int>(kSide) - 1 - i : i;
      rows.push_back(kCropPadding + i + augmentation.shift_y);
      columns.push_back(kCropPadding + column + augmentation.shift_x);
    }
  }
};

class DeviceBatches final : public Batches {
 public:
  DeviceBatches(const ImageSet& set, Layout layout, const at::Device& device)
      : layout_(layout), device_(device) {
    const auto count = static_cast<std::int64_t>(set.size());
    auto pixels = at::empty({count, 3, 32, 32}, at::kByte);
    auto labels = at::empty({count}, at::kLong);
    set.copy_pixels({pixels.data_ptr<std::uint8_t>(), set.size() * kImageBytes});
    set.copy_labels({labels.data_ptr<std::int64_t>(), set.size()});
    constexpr int kPad = kCropPadding;
    padded_ = at::constant_pad_nd(pixels.to(device), {kPad, kPad, kPad, kPad}, 0);
    labels_ = labels.to(device);
    channels_ = at::arange(3, at::TensorOptions(device).dtype(at::kLong)).view({1, 3, 1, 1});
    const Normalization norm;
    mean_ = at::tensor(at::ArrayRef<float>(norm.mean), device).view({1, 3, 1, 1});
    deviation_ = at::tensor(at::ArrayRef<float>(norm.deviation), device).view({1, 3, 1, 1});
  }

  Batch batch(std::span<const std::uint32_t> ids,
              const std::optional<EpochKey>& key) const override {
    const auto count = static_cast<std::int64_t>(ids.size());
    std::vector<std::int64_t> chosen(ids.begin(), ids.end());
    Places places;
    for (const auto id : ids) places.add(key ? augmentation_of(*key, id) : Augmentation{});
    const auto index = to_device(chosen);
    const auto bytes = padded_.index({index.view({count, 1, 1, 1}), channels_,
                                      to_device(places.rows).view({count, 1, 32, 1}),
                                      to_device(places.columns).view({count, 1, 1, 32})});
    const auto format = layout_ == Layout::kChannelsLast ? at::MemoryFormat::ChannelsLast
                                                         : at::MemoryFormat::Contiguous;
    auto images = bytes.to(at::kFloat).div_(255.0).sub_(mean_).div_(deviation_);
    return {images.contiguous(format), labels_.index({index})};
  }

 private:
  [[nodiscard]] at::Tensor to_device(std::vector<std::int64_t>& values) const {
    return at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kLong)
        .to(device_, at::kLong, /*non_blocking=*/false, /*copy=*/true);
  }

  Layout layout_;
  at::Device device_;
  at::Tensor padded_;  // bytes [count, 3, 40, 40]
  at::Tensor labels_, channels_, mean_, deviation_;
};

}  // namespace

std::unique_ptr<Batches> device_batches(const ImageSet& set, Layout layout,
                                        const at::Device& device) {
  return std::make_unique<DeviceBatches>(set, layout, device);
}

}  // namespace ddprun::trainer

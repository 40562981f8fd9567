#include <ATen/ops/empty.h>

#include "trainer/train/batches.hpp"

namespace ddprun::trainer {

namespace {

class HostBatches final : public Batches {
 public:
  HostBatches(const ImageSet& set, Layout layout)
      : set_(set), layout_(layout), writer_(Normalization{}, layout) {}

  Batch batch(std::span<const std::uint32_t> ids,
              const std::optional<EpochKey>& key) const override {
    const auto count = static_cast<std::int64_t>(ids.size());
    const auto format = layout_ == Layout::kChannelsLast ? at::MemoryFormat::ChannelsLast
                                                         : at::MemoryFormat::Contiguous;
    Batch batch{at::empty({count, 3, 32, 32}, at::TensorOptions(at::kFloat).memory_format(format)),
                at::empty({count}, at::kLong)};
    const std::span pixels(batch.images.data_ptr<float>(), ids.size() * kImageBytes);
    if (key) {
      writer_.write_augmented(set_, ids, *key, pixels);
    } else {
      writer_.write_plain(set_, ids, pixels);
    }
    write_labels(set_, ids, {batch.labels.data_ptr<std::int64_t>(), ids.size()});
    return batch;
  }

 private:
  const ImageSet& set_;
  Layout layout_;
  BatchWriter writer_;
};

}  // namespace

std::unique_ptr<Batches> host_batches(const ImageSet& set, Layout layout) {
  return std::make_unique<HostBatches>(set, layout);
}

}  // namespace ddprun::trainer

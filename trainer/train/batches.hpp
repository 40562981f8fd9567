// Converts image ids to tensors on the training device. On a CPU the bytes are augmented directly
// into the batch; on an accelerator the whole set is stored as bytes and a batch is one gather.
// Both produce the same pixels. The image set must outlive it. One thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <span>

#include "trainer/data/augment.hpp"
#include "trainer/data/images.hpp"

namespace ddprun::trainer {

struct Batch {
  at::Tensor
      images;  ///< float32 [N, 3, 32, 32] in the given layout, (byte / 255 - mean) / deviation
  at::Tensor labels;  ///< int64 [N]
};

class Batches {
 public:
  virtual ~Batches() = default;
  /// Augmented for `key`; unchanged if there is none.
  [[nodiscard]] virtual Batch batch(std::span<const std::uint32_t> ids,
                                    const std::optional<EpochKey>& key) const = 0;
};

[[nodiscard]] std::unique_ptr<Batches> host_batches(const ImageSet& set, Layout layout);
/// Copies the set to the device: 3.9 KB per image, including padding.
[[nodiscard]] std::unique_ptr<Batches> device_batches(const ImageSet& set, Layout layout,
                                                      const at::Device& device);

}  // namespace ddprun::trainer

// What of a run lives in tensors: weights, buffers, momentum. To and from the named byte views of a
// checkpoint, and as a digest. One thread. Errors: TrainerError naming the tensor.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/checkpoint/safetensors.hpp"
#include "trainer/model/resnet18.hpp"

namespace ddprun::trainer {

/// Weights and buffers under their own names, then the momentum as "momentum.<parameter>".
struct ModelState {
  NamedTensors parameters;
  NamedTensors buffers;
  NamedTensors momentum;

  /// All of them under the names they have in a file.
  [[nodiscard]] NamedTensors all() const;
};

/// Row-major bytes on the host: copies where the tensors are not such already.
class HostCopy {
 public:
  explicit HostCopy(const NamedTensors& tensors);
  [[nodiscard]] const std::vector<TensorView>& views() const { return views_; }

 private:
  std::vector<at::Tensor> owners_;
  std::vector<TensorView> views_;
};

/// Overwrites every tensor with the one of the same name in the file; shape and type must agree.
void load_tensors(const SafetensorsFile& file, const NamedTensors& into);

/// Equal bits, equal digest, whatever the memory format or device.
[[nodiscard]] std::uint64_t digest_of_tensors(const NamedTensors& tensors);

}  // namespace ddprun::trainer

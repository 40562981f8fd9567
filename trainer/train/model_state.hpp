// The tensors of a run's state: weights, buffers, momentum. Converts them to and from the named
// byte views of a checkpoint, and to a digest. One thread. Errors: TrainerError naming the tensor.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/checkpoint/safetensors.hpp"
#include "trainer/model/resnet18.hpp"

namespace ddprun::trainer {

/// Tensors keep the type and shape of the model (float32, counters int64); in a checkpoint they are
/// row-major (NCHW for convolutions), whatever their layout in memory. Weights and buffers under
/// their own names, then the momentum as "momentum.<parameter>".
struct ModelState {
  NamedTensors parameters;
  NamedTensors buffers;
  NamedTensors momentum;

  /// All tensors with their names in a checkpoint.
  [[nodiscard]] NamedTensors all() const;
};

/// Row-major bytes on the host; copies tensors only if necessary.
class HostCopy {
 public:
  explicit HostCopy(const NamedTensors& tensors);
  [[nodiscard]] const std::vector<TensorView>& views() const { return views_; }

 private:
  std::vector<at::Tensor> owners_;
  std::vector<TensorView> views_;
};

/// Row-major bytes in host memory of its own: later changes of the tensors do not reach them.
class HostSnapshot {
 public:
  /// Replaces what it had. The memory is used again: a model keeps its shapes.
  void take(const NamedTensors& tensors);
  [[nodiscard]] const std::vector<TensorView>& views() const { return views_; }

 private:
  std::vector<at::Tensor> owners_;
  std::vector<TensorView> views_;
};

/// Overwrites every tensor with the tensor of the same name in the file; shape and type must match.
void load_tensors(const SafetensorsFile& file, const NamedTensors& into);

/// Equal bits give an equal digest, regardless of memory format and device.
[[nodiscard]] std::uint64_t digest_of_tensors(const NamedTensors& tensors);

}  // namespace ddprun::trainer

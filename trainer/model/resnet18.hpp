// ResNet-18 for 32x32 images: 3x3 stem without max-pool, four stages of two basic blocks (width,
// 2, 4 and 8 times width channels), mean, linear. Names and order of parameters and buffers match
// the usual Python model, so that state dicts are interchangeable. After He et al. 2016
// (arXiv:1512.03385), with the CIFAR stem of its section 4.2 and option B shortcuts (1x1
// convolution); batch norm as torch.nn.BatchNorm2d (eps 1e-5, momentum 0.1). Parameters and
// statistics are float32, the batch counters int64. Not thread-safe. Errors: c10::Error from
// LibTorch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ddprun::trainer {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};
using NamedTensors = std::vector<NamedTensor>;

/// The tensors without names, in the same order, detached from autograd.
[[nodiscard]] std::vector<at::Tensor> detached(const NamedTensors& named);

struct ResNet18Options {
  int64_t width = 64;  ///< channels of the first stage; 64 has 11,173,962 parameters
  int64_t classes = 10;
};

enum class Mode { kTrain, kEvaluate };

class ResNet18 {
 public:
  /// Initializes the weights from torch's default generator: with the same seed, they equal those
  /// of the Python model.
  explicit ResNet18(ResNet18Options options);
  ~ResNet18();
  ResNet18(const ResNet18&) = delete;
  ResNet18& operator=(const ResNet18&) = delete;

  /// Logits [N, classes] of float32 images [N, 3, 32, 32], contiguous or channels_last (faster).
  /// The logits are float32, or bfloat16 within an AutocastScope of that precision.
  [[nodiscard]] at::Tensor forward(const at::Tensor& images);
  void set_mode(Mode mode);
  /// What a training forward weighs the statistics of its batch with in the running ones (0.1).
  void set_statistics_momentum(double momentum);
  /// Moves the model to the device; 4-d weights use `format`. Call before gradients or reducers
  /// exist.
  void to(const at::Device& device, at::MemoryFormat format);

  [[nodiscard]] NamedTensors parameters() const;
  [[nodiscard]] NamedTensors buffers() const;
  [[nodiscard]] int64_t parameter_count() const;

 private:
  struct Network;
  std::shared_ptr<Network> network_;
};

}  // namespace ddprun::trainer

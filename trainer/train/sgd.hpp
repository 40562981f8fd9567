// SGD with momentum, bit-identical to torch.optim.SGD and after its documentation, dampening 0:
//   g = gradient + weight_decay * p;  m = momentum * m + g
//   p = p - rate * (g + momentum * m) with Nesterov's momentum, p - rate * m without
// All tensors are float32 in the layout of the parameter. The momentum is initialized to zeros
// (equivalent to torch's lazy initialization, since dampening is 0), so that it can be saved,
// broadcast and restored like the weights. One thread; the parameters share storage with the
// model's.
#pragma once

#include "trainer/model/resnet18.hpp"

namespace ddprun::trainer {

enum class Nesterov { kOff, kOn };
enum class DecayOn { kMatrices, kAll };  ///< kMatrices: only tensors of more than one dimension

struct SgdOptions {
  double momentum = 0.9;
  double weight_decay = 5e-4;
  Nesterov nesterov = Nesterov::kOn;
  DecayOn decay_on = DecayOn::kMatrices;
};

class Sgd {
 public:
  Sgd(const NamedTensors& parameters, SgdOptions options);

  /// One update from the current gradients; modifies the gradients.
  void step(double learning_rate);
  /// The momentum tensors under the names of their parameters.
  [[nodiscard]] NamedTensors momentum() const;

 private:
  struct Slot {
    std::string name;
    at::Tensor parameter;
    at::Tensor momentum;
    double weight_decay;
  };
  void update(Slot& slot, double learning_rate) const;
  void update_fused(double weight_decay, double learning_rate);

  std::vector<Slot> slots_;
  SgdOptions options_;
};

}  // namespace ddprun::trainer

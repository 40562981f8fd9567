#include "trainer/train/sgd.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/zeros_like.h>

namespace ddprun::trainer {

Sgd::Sgd(const NamedTensors& parameters, SgdOptions options) : options_(options) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, parameter] : parameters) {
    const bool decays = options.decay_on == DecayOn::kAll || parameter.dim() > 1;
    slots_.push_back(
        {name, parameter, at::zeros_like(parameter), decays ? options.weight_decay : 0.0});
  }
}

void Sgd::step(double learning_rate) {
  const at::NoGradGuard no_grad;
  if (slots_.front().parameter.is_cuda()) {  // a few kernel launches instead of hundreds
    if (options_.weight_decay != 0.0) update_fused(options_.weight_decay, learning_rate);
    update_fused(0.0, learning_rate);
    return;
  }
  for (auto& slot : slots_) update(slot, learning_rate);
}

void Sgd::update(Slot& slot, double learning_rate) const {
  auto gradient = slot.parameter.grad();
  if (!gradient.defined()) return;
  if (slot.weight_decay != 0.0) gradient.add_(slot.parameter, slot.weight_decay);
  slot.momentum.mul_(options_.momentum).add_(gradient);
  if (options_.nesterov == Nesterov::kOn) {
    gradient.add_(slot.momentum, options_.momentum);
    slot.parameter.add_(gradient, -learning_rate);
  } else {
    slot.parameter.add_(slot.momentum, -learning_rate);
  }
}

void Sgd::update_fused(double weight_decay, double learning_rate) {
  std::vector<at::Tensor> parameters, gradients, momenta;
  for (auto& slot : slots_) {
    if (slot.weight_decay != weight_decay || !slot.parameter.grad().defined()) continue;
    parameters.push_back(slot.parameter);
    gradients.push_back(slot.parameter.grad());
    momenta.push_back(slot.momentum);
  }
  if (parameters.empty()) return;
  at::_fused_sgd_(parameters, gradients, momenta, weight_decay, options_.momentum, learning_rate,
                  /*dampening=*/0.0, options_.nesterov == Nesterov::kOn, /*maximize=*/false,
                  /*is_first_step=*/false);
}

NamedTensors Sgd::momentum() const {
  NamedTensors named;
  for (const auto& slot : slots_) named.push_back({slot.name, slot.momentum});
  return named;
}

}  // namespace ddprun::trainer

// Writes a state dict that plain `torch.load(path)` opens (weights_only and all): name -> tensor,
// for `model.load_state_dict`. torch::save from C++ would write a TorchScript archive, which
// torch.load refuses.
#pragma once

#include <filesystem>

#include "trainer/model/resnet18.hpp"

namespace ddprun::trainer {

/// Atomic: the file is complete or not there. Throws TrainerError with the path when it cannot be
/// written.
void export_state_dict(const std::filesystem::path& path, const NamedTensors& tensors);

}  // namespace ddprun::trainer

// Writes a state dict (name -> tensor) that plain `torch.load(path)` opens, even with weights_only,
// for `model.load_state_dict`. torch::save from C++ would write a TorchScript archive, which
// torch.load refuses.
#pragma once

#include <filesystem>

#include "trainer/model/resnet18.hpp"

namespace ddprun::trainer {

/// Atomic: the file is complete or does not exist. Throws TrainerError with the path if it cannot
/// be written.
void export_state_dict(const std::filesystem::path& path, const NamedTensors& tensors);

}  // namespace ddprun::trainer

// bf16 means torch.autocast(dtype=bfloat16): its list of operations computes in bfloat16; weights,
// gradients, momentum, batch norm and loss remain float32. Selects fp32 or bf16 for all ranks, and
// the scope in which autocast is enabled. The CPU's instruction set decides, not a measurement,
// which could differ between the start and a restart. Main thread.
#pragma once

#include <c10/core/Device.h>

#include "trainer/ddp/group.hpp"
#include "trainer/options/options.hpp"

namespace ddprun::trainer {

enum class Precision { kFp32, kBf16 };

/// True if this CPU multiplies bf16 in hardware (AVX512-BF16, AMX, Arm BF16); otherwise bf16 is
/// half as fast as fp32. Checks CPU features instead of measuring, so that a restart on a busy
/// machine makes the same decision.
[[nodiscard]] bool cpu_has_bf16();

/// Collective: bf16 only if every rank benefits from it, or if --amp on requests it.
[[nodiscard]] Precision agree_on_precision(Amp choice, const at::Device& device, Group& group);

/// Runs forward passes in its lifetime with the given precision. Caches casts of weights until it
/// is destroyed, so it must not outlive an update of the weights.
class AutocastScope {
 public:
  AutocastScope(Precision precision, const at::Device& device);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  Precision precision_;
  at::DeviceType type_;
};

}  // namespace ddprun::trainer

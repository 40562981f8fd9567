// fp32 or bf16: which one the ranks use, and the scope in which autocast is on. Main thread.
#pragma once

#include <c10/core/Device.h>

#include "trainer/ddp/group.hpp"
#include "trainer/options/options.hpp"

namespace ddprun::trainer {

enum class Precision { kFp32, kBf16 };

/// True when this CPU multiplies bf16 in hardware (AVX512-BF16, AMX, Arm BF16). Without that, bf16
/// is half as fast as fp32. Instructions instead of a stop-watch: a restart on a busy machine must
/// not decide anew.
[[nodiscard]] bool cpu_has_bf16();

/// Collective: bf16 only if every rank can gain from it, or --amp on asks for it everywhere.
[[nodiscard]] Precision agree_on_precision(Amp choice, const at::Device& device, Group& group);

/// While it lives, forward runs in the precision. Casts of weights are cached until it ends, so it
/// must not outlive an update of the weights.
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

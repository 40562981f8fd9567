#include "trainer/train/precision.hpp"

#include <ATen/autocast_mode.h>
#include <ATen/ops/full.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include "trainer/device/accelerator.hpp"

namespace ddprun::trainer {

bool cpu_has_bf16() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kAmxBf16 = 1U << 22U;    // leaf 7.0, edx
  constexpr unsigned kAvx512Bf16 = 1U << 5U;  // leaf 7.1, eax
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kAmxBf16) != 0) return true;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & kAvx512Bf16) != 0;
#elif defined(__aarch64__)
  constexpr unsigned long kBf16 = 1UL << 14U;  // HWCAP2_BF16
  return (::getauxval(AT_HWCAP2) & kBf16) != 0;
#else
  return false;
#endif
}

Precision agree_on_precision(Amp choice, const at::Device& device, Group& group) {
  const bool gains = device.is_cuda() ? accelerator_has_bf16(device.index()) : cpu_has_bf16();
  const bool wanted = choice == Amp::kOn || (choice == Amp::kAuto && gains);
  auto agreed = at::full({1}, wanted ? 1.0 : 0.0, at::kDouble);
  group.minimum(agreed);
  return agreed.item<double>() > 0.5 ? Precision::kBf16 : Precision::kFp32;
}

AutocastScope::AutocastScope(Precision precision, const at::Device& device)
    : precision_(precision), type_(device.type()) {
  if (precision_ == Precision::kFp32) return;
  at::autocast::set_autocast_dtype(type_, at::kBFloat16);
  at::autocast::set_autocast_enabled(type_, true);
}

AutocastScope::~AutocastScope() {
  if (precision_ == Precision::kFp32) return;
  at::autocast::set_autocast_enabled(type_, false);
  at::autocast::clear_cache();  // otherwise the next step would use the old weights
}

}  // namespace ddprun::trainer

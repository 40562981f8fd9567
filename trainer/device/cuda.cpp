// The CUDA program: devices through the CUDA runtime, collectives through NCCL.
#include "trainer/device/accelerator.hpp"

#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

namespace ddprun::trainer {

bool built_with_cuda() {
  return true;
}

int accelerator_count() {
  return c10::cuda::device_count();
}

std::string accelerator_name(int index) {
  return at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(index))->name;
}

bool accelerator_has_bf16(int index) {
  return at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(index))->major >= 8;
}

void use_accelerator(int index) {
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(index));
  auto& context = at::globalContext();
  context.setBenchmarkCuDNN(true);
  context.setAllowTF32CuDNN(true);
}

void accelerator_synchronize() {
  c10::cuda::device_synchronize();
}

void add_nccl(c10d::ProcessGroup& group, const AcceleratorGroup& options) {
  auto nccl = c10d::ProcessGroupNCCL::Options::create();
  nccl->timeout = options.timeout;
  group.setBackend(
      c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::NCCL,
      c10::make_intrusive<c10d::ProcessGroupNCCL>(options.store, options.rank, options.size, nccl));
}

void shut_nccl(c10d::ProcessGroup& group) {
  // The destructor's fallback is unsuitable for a program without Python: it may block in abort.
  auto backend = group.getBackend(c10::DeviceType::CUDA);
  if (auto* nccl = dynamic_cast<c10d::ProcessGroupNCCL*>(backend.get())) nccl->shutdown();
}

}  // namespace ddprun::trainer

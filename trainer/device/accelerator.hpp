// The differences between the CPU and the CUDA program: each links one implementation of these
// functions (none.cpp or cuda.cpp). Call from the main thread. Errors: std::runtime_error,
// c10::Error.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <string>

namespace c10d {
class Backend;
class ProcessGroup;
class Store;
}  // namespace c10d

namespace ddprun::trainer {

/// True in the CUDA program.
[[nodiscard]] bool built_with_cuda();
/// Number of devices available to this process; 0 in the CPU program.
[[nodiscard]] int accelerator_count();
/// For example "NVIDIA H200"; empty in the CPU program.
[[nodiscard]] std::string accelerator_name(int index);
/// True if the device has matrix units for bf16.
[[nodiscard]] bool accelerator_has_bf16(int index);
/// Makes the device current and enables its fast modes (TF32, convolution autotuning).
void use_accelerator(int index);
/// Waits for all work queued on the current device.
void accelerator_synchronize();

struct AcceleratorGroup {
  c10::intrusive_ptr<c10d::Store> store;
  int rank = 0;
  int size = 1;
  std::chrono::milliseconds timeout{};
};

/// Adds an NCCL backend for device tensors to the group.
void add_nccl(c10d::ProcessGroup& group, const AcceleratorGroup& options);
/// Shuts down NCCL before the group is destroyed; no effect without add_nccl().
void shut_nccl(c10d::ProcessGroup& group);

}  // namespace ddprun::trainer

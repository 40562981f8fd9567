// The CPU program: no accelerator. The functions that need one are unreachable, because the count
// is 0.
#include "trainer/device/accelerator.hpp"

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <stdexcept>

namespace ddprun::trainer {

bool built_with_cuda() {
  return false;
}
int accelerator_count() {
  return 0;
}
std::string accelerator_name(int) {
  return {};
}
bool accelerator_has_bf16(int) {
  return false;
}
void use_accelerator(int) {
  throw std::logic_error("this program is built without CUDA");
}
void accelerator_synchronize() {}

void add_nccl(c10d::ProcessGroup&, const AcceleratorGroup&) {
  throw std::logic_error("this program is built without NCCL");
}

void shut_nccl(c10d::ProcessGroup&) {}

}  // namespace ddprun::trainer

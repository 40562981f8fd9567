#include "trainer/train/model_state.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include "trainer/checkpoint/digest.hpp"
#include "trainer/error.hpp"

namespace ddprun::trainer {

namespace {

DType file_type(const NamedTensor& named) {
  switch (named.tensor.scalar_type()) {
    case at::kFloat:
      return DType::kF32;
    case at::kLong:
      return DType::kI64;
    default:
      throw TrainerError("tensor " + named.name + " has a type that checkpoints do not support");
  }
}

at::ScalarType tensor_type(DType type) {
  return type == DType::kI64 ? at::kLong : at::kFloat;
}

TensorView view_of(const NamedTensor& named, const at::Tensor& host) {
  const auto* bytes = static_cast<const std::byte*>(host.const_data_ptr());
  return {named.name, file_type(named), host.sizes().vec(), std::span(bytes, host.nbytes())};
}

}  // namespace

NamedTensors ModelState::all() const {
  auto named = parameters;
  named.insert(named.end(), buffers.begin(), buffers.end());
  for (const auto& item : momentum) named.push_back({"momentum." + item.name, item.tensor});
  return named;
}

HostCopy::HostCopy(const NamedTensors& tensors) {
  for (const auto& item : tensors) {
    owners_.push_back(item.tensor.detach().cpu().contiguous());
    views_.push_back(view_of(item, owners_.back()));
  }
}

void HostSnapshot::take(const NamedTensors& tensors) {
  const at::NoGradGuard no_grad;
  owners_.resize(tensors.size());
  views_.clear();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& tensor = tensors[i].tensor;
    auto& owner = owners_[i];
    if (!owner.defined() || owner.sizes() != tensor.sizes() || owner.dtype() != tensor.dtype()) {
      owner = at::empty(tensor.sizes(), at::TensorOptions().dtype(tensor.dtype()));
    }
    owner.copy_(tensor);
    views_.push_back(view_of(tensors[i], owner));
  }
}

void load_tensors(const SafetensorsFile& file, const NamedTensors& into) {
  const at::NoGradGuard no_grad;
  for (const auto& item : into) {
    const auto& saved = file.tensor(item.name);
    if (saved.shape != item.tensor.sizes().vec() || saved.type != file_type(item)) {
      throw TrainerError(
          file.path().string() + ": tensor " + item.name +
          " has a different shape or type than in the model; was it trained with another --width?");
    }
    // from_blob takes a mutable pointer, but the tensor is only read.
    auto* bytes = const_cast<std::byte*>(saved.bytes.data());
    auto target = item.tensor;
    target.copy_(at::from_blob(bytes, saved.shape, tensor_type(saved.type)));
  }
}

std::uint64_t digest_of_tensors(const NamedTensors& tensors) {
  const HostCopy copy(tensors);
  Digest digest;
  for (const auto& view : copy.views()) digest.update(view.name).update(view.bytes);
  return digest.value();
}

}  // namespace ddprun::trainer

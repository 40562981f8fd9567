#include "trainer/model/resnet18.hpp"

#include <ATen/Parallel.h>
#include <ATen/ops/conv2d.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

namespace ddprun::trainer {

namespace nn = torch::nn;

namespace {

nn::Conv2d convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  return nn::Conv2d(
      nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

struct BasicBlock : nn::Module {
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Sequential shortcut;  // empty: identity

  BasicBlock(int64_t in, int64_t out, int64_t stride)
      : conv1(convolution(in, out, 3, stride)),
        bn1(out),
        conv2(convolution(out, out, 3, 1)),
        bn2(out) {
    register_module("conv1", conv1);
    register_module("bn1", bn1);
    register_module("conv2", conv2);
    register_module("bn2", bn2);
    if (stride != 1 || in != out) {
      shortcut->push_back(convolution(in, out, 1, stride));
      shortcut->push_back(nn::BatchNorm2d(out));
    }
    register_module("shortcut", shortcut);
  }

  at::Tensor forward(const at::Tensor& input) {
    auto out = bn1(conv1(input));
    out = bn2(conv2(out.relu_()));
    out.add_(shorten(input));
    return out.relu_();
  }

  at::Tensor shorten(const at::Tensor& input) {
    if (shortcut->is_empty()) return input;
    if (!overruns(input)) return shortcut->forward(input);
    const auto every_other = input.slice(2, 0, input.size(2), 2).slice(3, 0, input.size(3), 2);
    const auto& weight = shortcut[0]->as<nn::Conv2d>()->weight;
    return shortcut[1]->as<nn::BatchNorm2d>()->forward(at::conv2d(every_other, weight));
  }

  // Works around a bug of oneDNN (torch 2.11 and 2.15, also from Python): the weight gradient of a
  // strided 1x1 convolution with few channels, on threads that cannot split the batch evenly,
  // writes outside its buffer and crashes. The version without a stride is correct and computes the
  // same.
  [[nodiscard]] bool overruns(const at::Tensor& input) const {
    constexpr int64_t kChannelsOfOneVector = 16;
    return input.is_cpu() && input.size(1) < kChannelsOfOneVector && at::get_num_threads() > 1 &&
           conv1->options.stride()->at(0) == 2;
  }
};

}  // namespace

struct ResNet18::Network : nn::Module {
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Sequential layer1, layer2, layer3, layer4;
  nn::Linear linear{nullptr};

  explicit Network(ResNet18Options options)
      : conv1(convolution(3, options.width, 3, 1)), bn1(options.width) {
    register_module("conv1", conv1);
    register_module("bn1", bn1);
    int64_t in = options.width;
    auto fill = [&](const char* name, nn::Sequential& layer, int64_t out, int64_t stride) {
      layer->push_back(std::make_shared<BasicBlock>(in, out, stride));
      layer->push_back(std::make_shared<BasicBlock>(out, out, 1));
      register_module(name, layer);
      in = out;
    };
    fill("layer1", layer1, options.width, 1);
    fill("layer2", layer2, options.width * 2, 2);
    fill("layer3", layer3, options.width * 4, 2);
    fill("layer4", layer4, options.width * 8, 2);
    linear = register_module("linear", nn::Linear(in, options.classes));
  }

  at::Tensor forward(const at::Tensor& images) {
    auto out = bn1(conv1(images));
    out.relu_();
    out = layer4->forward(layer3->forward(layer2->forward(layer1->forward(out))));
    return linear(out.mean({2, 3}));
  }
};

ResNet18::ResNet18(ResNet18Options options) : network_(std::make_shared<Network>(options)) {}
ResNet18::~ResNet18() = default;

at::Tensor ResNet18::forward(const at::Tensor& images) {
  return network_->forward(images);
}

void ResNet18::set_mode(Mode mode) {
  network_->train(mode == Mode::kTrain);
}

void ResNet18::set_statistics_momentum(double momentum) {
  for (auto& module : network_->modules(/*include_self=*/false)) {
    if (auto* norm = module->as<nn::BatchNorm2d>()) norm->options.momentum(momentum);
  }
}

void ResNet18::to(const at::Device& device, at::MemoryFormat format) {
  network_->to(device);
  for (auto& parameter : network_->parameters()) {
    if (parameter.dim() == 4) {
      // clone(), not contiguous(): a 1x1 kernel is contiguous in both formats, but its gradient has
      // the strides of this one, and DDP would copy it in every step.
      parameter.set_data(parameter.data().clone(format));
    }
  }
}

NamedTensors ResNet18::parameters() const {
  NamedTensors named;
  for (const auto& item : network_->named_parameters()) named.push_back({item.key(), item.value()});
  return named;
}

NamedTensors ResNet18::buffers() const {
  NamedTensors named;
  for (const auto& item : network_->named_buffers()) named.push_back({item.key(), item.value()});
  return named;
}

int64_t ResNet18::parameter_count() const {
  int64_t count = 0;
  for (const auto& parameter : network_->parameters()) count += parameter.numel();
  return count;
}

std::vector<at::Tensor> detached(const NamedTensors& named) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(named.size());
  for (const auto& item : named) tensors.push_back(item.tensor.detach());
  return tensors;
}

}  // namespace ddprun::trainer

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "tests/support/catch.hpp"
#include "tests/trainer_data/temporary_folder.hpp"
#include "trainer/error.hpp"
#include "trainer/train/batches.hpp"
#include "trainer/train/device_sums.hpp"
#include "trainer/train/model_state.hpp"
#include "trainer/train/precision.hpp"
#include "trainer/train/saver.hpp"
#include "trainer/train/sgd.hpp"

using namespace ddprun::trainer;

TEST_CASE("full width has 11,173,962 parameters in 62 tensors and 60 buffers") {
  const ResNet18 model({64, 10});
  CHECK(model.parameter_count() == 11'173'962);
  CHECK(model.parameters().size() == 62);
  CHECK(model.buffers().size() == 60);
  CHECK(model.parameters().front().name == "conv1.weight");
  CHECK(model.parameters().back().name == "linear.bias");
}

TEST_CASE("narrow models have the known sizes and return ten logits per image") {
  CHECK(ResNet18({16, 10}).parameter_count() == 701'466);
  ResNet18 model({8, 10});
  CHECK(model.forward(at::zeros({2, 3, 32, 32})).sizes() == at::IntArrayRef({2, 10}));
}

TEST_CASE("channels_last applies to 1x1 kernels too, where both formats look alike") {
  ResNet18 model({8, 10});
  model.to(at::kCPU, at::MemoryFormat::ChannelsLast);
  for (const auto& [name, tensor] : model.parameters()) {
    if (tensor.dim() != 4) continue;
    INFO(name);
    CHECK(tensor.strides() == at::empty_like(tensor, at::MemoryFormat::ChannelsLast).strides());
  }
}

TEST_CASE("weight decay skips vectors unless configured otherwise") {
  const auto decayed = [](DecayOn decay_on) {
    auto matrix = at::ones({2, 2}), vector = at::ones({2});
    for (auto* tensor : {&matrix, &vector}) {
      tensor->set_requires_grad(true);
      tensor->mutable_grad() = at::zeros_like(tensor->detach());
    }
    Sgd sgd({{"matrix", matrix}, {"vector", vector}}, {0.0, 0.5, Nesterov::kOff, decay_on});
    sgd.step(1.0);
    return std::pair(matrix.sum().item<double>() / 4, vector.sum().item<double>() / 2);
  };
  CHECK(decayed(DecayOn::kMatrices) == std::pair(0.5, 1.0));
  CHECK(decayed(DecayOn::kAll) == std::pair(0.5, 0.5));
}

TEST_CASE("momentum follows torch.optim.SGD, with and without Nesterov") {
  // g = 1, momentum 0.5, lr 1. Plain: v = 1, 1.5; w = 0 - 1 - 1.5. Nesterov: steps of 1 + 0.5 v.
  const auto after_two = [](Nesterov nesterov) {
    auto weight = at::zeros({1});
    weight.set_requires_grad(true);
    Sgd sgd({{"w", weight}}, {0.5, 0.0, nesterov, DecayOn::kAll});
    for (int i = 0; i < 2; ++i) {
      weight.mutable_grad() = at::ones({1});
      sgd.step(1.0);
    }
    CHECK(sgd.momentum().front().tensor.item<double>() == 1.5);
    return weight.item<double>();
  };
  CHECK(after_two(Nesterov::kOff) == -2.5);
  CHECK(after_two(Nesterov::kOn) == -(1.0 + 0.5) - (1.0 + 0.75));
}

TEST_CASE("sums on the device equal the sums on the host, including ties and NaN") {
  at::manual_seed(1);
  auto logits = at::randint(-3, 3, {64, 10}).to(at::kFloat);  // small integers: many ties
  logits[0].fill_(std::numeric_limits<float>::quiet_NaN());
  const auto labels = at::randint(0, 10, {64});
  DeviceSums device{at::kCPU};
  device.add(logits, labels, at::full({}, 0.25));
  MetricSums host;
  host.add({{logits.const_data_ptr<float>(), 640}, {labels.const_data_ptr<std::int64_t>(), 64}, 10},
           16.0);
  Group alone{GroupOptions{}};
  CHECK(device.take(alone).vector() == host.vector());
  CHECK(device.take(alone).samples() == 0);
}

TEST_CASE("a batch gathered on a device has the same pixels as one written on the host") {
  const auto set = generate_images({20, 3});
  const std::vector<std::uint32_t> ids{7, 0, 19, 7};
  for (const auto layout : {Layout::kNchw, Layout::kChannelsLast}) {
    const auto host = host_batches(set, layout);
    const auto device = device_batches(set, layout, at::kCPU);
    for (const std::optional<EpochKey> key : {std::optional<EpochKey>{}, {EpochKey{5, 2}}}) {
      const auto one = host->batch(ids, key), other = device->batch(ids, key);
      CHECK(at::allclose(one.images, other.images, 1e-5, 1e-5));
      CHECK(one.images.strides() == other.images.strides());
      CHECK(at::equal(one.labels, other.labels));
    }
  }
}

TEST_CASE("a state digest covers every bit but not the memory format") {
  auto tensor = at::rand({2, 3, 4, 4});
  const auto digest = digest_of_tensors({{"w", tensor}});
  CHECK(digest_of_tensors({{"w", tensor.contiguous(at::MemoryFormat::ChannelsLast)}}) == digest);
  CHECK(digest_of_tensors({{"v", tensor}}) != digest);
  tensor[1][2][3][3] += 0.5;
  CHECK(digest_of_tensors({{"w", tensor}}) != digest);
}

TEST_CASE("a snapshot keeps what the tensors were, and is taken again in the same memory") {
  auto weight = at::rand({2, 3, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast);
  auto counter = at::ones({}, at::kLong);
  const NamedTensors tensors{{"w", weight.set_requires_grad(true)}, {"n", counter}};
  const auto same_bytes = [](const TensorView& one, const TensorView& other) {
    return one.name == other.name && one.type == other.type && one.shape == other.shape &&
           std::ranges::equal(one.bytes, other.bytes);
  };
  HostSnapshot snapshot;
  snapshot.take(tensors);
  const auto* memory = snapshot.views().front().bytes.data();
  for (const double change : {0.5, 0.25}) {
    const auto before = HostCopy({{"w", weight.detach().clone()}, {"n", counter.clone()}});
    {
      const at::NoGradGuard no_grad;
      weight.add_(change);
      counter.add_(1);
    }
    REQUIRE(snapshot.views().size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(same_bytes(snapshot.views()[i], before.views()[i]));
      CHECK_FALSE(same_bytes(snapshot.views()[i], HostCopy(tensors).views()[i]));
    }
    snapshot.take(tensors);
    CHECK(snapshot.views().front().bytes.data() == memory);
  }
}

TEST_CASE("a checkpoint written beside the training has the bytes of one written at its step") {
  const TemporaryFolder files;
  ResNet18 model({8, 10});
  model.to(at::kCPU, at::MemoryFormat::ChannelsLast);
  Sgd sgd(model.parameters(), {});
  const ModelState tensors{model.parameters(), model.buffers(), sgd.momentum()};
  TrainingState state;
  TrainerOptions options;
  CheckpointFolder background(files / "background", "m"), now(files / "now", "m");
  Saver saver(options, background), waiting(options, now);
  for (state.step = 1; state.step < 5; ++state.step) {
    waiting.save_last(tensors.all(), state, Saver::Write::kNow);
    saver.save_last(tensors.all(), state, Saver::Write::kInBackground);
    {
      const at::NoGradGuard no_grad;  // the next step
      for (auto& item : tensors.all()) item.tensor.add_(1);
    }
    CHECK(saver.wait().empty());
    CHECK(content_of(background.last()) == content_of(now.last()));
    if (state.step > 1) CHECK(content_of(background.previous()) == content_of(now.previous()));
  }
}

TEST_CASE("while a checkpoint is written no other is due, and one that fails says why") {
  const TemporaryFolder files;
  put(files / "file", "");
  TrainerOptions options;
  options.checkpoint_budget = 1;
  CheckpointFolder folder(files / "file" / "no-folder", "m");
  Saver saver(options, folder);
  CHECK(saver.due());
  const NamedTensors tensors{{"w", at::ones({2})}};
  saver.save_last(tensors, {}, Saver::Write::kInBackground);
  CHECK_FALSE(saver.due());
  CHECK_THAT(saver.wait(), ContainsSubstring("cannot create the folder"));
  CHECK(saver.costs().saved == 0);
  CHECK_THROWS_AS(saver.save_last(tensors, {}, Saver::Write::kNow), TrainerError);
  options.checkpoint_async = Switch::kOff;
  Saver waiting(options, folder);
  CHECK_THROWS_AS(waiting.save_last(tensors, {}, Saver::Write::kInBackground), TrainerError);
}

TEST_CASE("autocast is enabled only within its scope") {
  const auto type_of = [] { return at::linear(at::ones({1, 2}), at::ones({1, 2})).scalar_type(); };
  {
    const AutocastScope scope(Precision::kBf16, at::kCPU);
    CHECK(type_of() == at::kBFloat16);
  }
  CHECK(type_of() == at::kFloat);
  const AutocastScope off(Precision::kFp32, at::kCPU);
  CHECK(type_of() == at::kFloat);
}

TEST_CASE("amp on and off apply regardless of the CPU's features") {
  Group alone{GroupOptions{}};
  CHECK(agree_on_precision(Amp::kOn, at::kCPU, alone) == Precision::kBf16);
  CHECK(agree_on_precision(Amp::kOff, at::kCPU, alone) == Precision::kFp32);
  const auto expected = cpu_has_bf16() ? Precision::kBf16 : Precision::kFp32;
  CHECK(agree_on_precision(Amp::kAuto, at::kCPU, alone) == expected);
}

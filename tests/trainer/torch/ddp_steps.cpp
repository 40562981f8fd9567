// ddp_steps DIRECTORY WIDTH MODE: the C++ half of the comparison with Python's DDP
// (parity_test.py). Reads x.bin and y.bin, trains with the trainer's model, reducer and optimizer,
// writes cpp_<MODE>_<rank>.pt.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/from_blob.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "trainer/ddp/data_parallel.hpp"
#include "trainer/train/export.hpp"
#include "trainer/train/setup.hpp"
#include "trainer/train/sgd.hpp"

namespace {

using namespace ddprun;
using namespace ddprun::trainer;

constexpr int kSteps = 5;
constexpr int kPerRank = 32;

at::Tensor read(const std::string& file, at::ScalarType type, at::IntArrayRef sizes) {
  std::ifstream in(file, std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  return at::from_blob(bytes.data(), sizes, type).clone();
}

NamedTensors gradients(const NamedTensors& parameters) {
  NamedTensors result;
  for (const auto& item : parameters) result.push_back({item.name, item.tensor.grad()});
  return result;
}

struct Run {
  ResNet18& model;
  DataParallel& parallel;
  int rank;

  void backward(const at::Tensor& x, const at::Tensor& y, double scale) {
    parallel.before_forward();
    const auto logits = model.forward(x);
    parallel.before_backward();
    const auto loss = at::cross_entropy_loss(logits, y);
    if (rank == 0) std::printf("loss %.9g\n", loss.item<double>());
    (scale == 1.0 ? loss : loss.mul(scale)).backward();
  }
};

int run(const std::string& folder, int64_t width, const std::string& mode) {
  std::string problem;
  const auto world = read_worker_environment(problem);
  if (!world) return std::fprintf(stderr, "%s\n", problem.c_str()), 2;
  at::set_num_threads(1);
  at::manual_seed(3 + static_cast<std::uint64_t>(world->rank));  // only rank 0's weights may count
  ResNet18 model({width, 10});
  const auto x =
      read(folder + "/x.bin", at::kFloat, {kSteps, world->world_size, kPerRank, 3, 32, 32});
  const auto y = read(folder + "/y.bin", at::kLong, {kSteps, world->world_size, kPerRank});
  Group group(group_options(*world, Placement{}));
  std::vector<at::Tensor> parameters;
  for (const auto& item : model.parameters()) parameters.push_back(item.tensor);
  DataParallel parallel(group, parameters, detached(model.buffers()));
  Run steps{model, parallel, world->rank};
  auto result = model.parameters();
  if (mode == "train") {
    Sgd sgd(model.parameters(), {0.9, 5e-4, Nesterov::kOn, DecayOn::kAll});
    for (int step = 0; step < kSteps; ++step) {
      steps.backward(x[step][world->rank], y[step][world->rank], 1.0);
      sgd.step(0.05);
      parallel.zero_gradients();
    }
    for (const auto& item : model.buffers()) result.push_back(item);
  } else {  // "uneven": 3 samples on rank 0, 2 on rank 1, the gradient of the mean over all 5
    model.set_mode(Mode::kEvaluate);
    const bool first = world->rank == 0;
    const auto part = [&](const at::Tensor& all) {
      return first ? all.slice(0, 0, 3) : all.slice(0, 3, 5);
    };
    steps.backward(part(x[0][0]), part(y[0][0]), (first ? 3.0 : 2.0) * 2.0 / 5.0);
    result = gradients(model.parameters());
  }
  export_state_dict(folder + "/cpp_" + mode + "_" + std::to_string(world->rank) + ".pt", result);
  group.leave_together();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    return run(argv[1], std::stoll(argv[2]), argv[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ddp_steps: %s\n", error.what());
    return 1;
  }
}

#include "trainer/train/session.hpp"

#include <ATen/Context.h>

#include <algorithm>
#include <span>

#include "trainer/error.hpp"

namespace ddprun::trainer {

namespace {

Layout layout_of(const TrainerOptions& options) {
  return options.memory == Memory::kChannelsLast ? Layout::kChannelsLast : Layout::kNchw;
}

// The constructor of the model draws the weights from torch's generator.
ResNet18Options seeded(const TrainerOptions& options) {
  at::manual_seed(options.seed);
  return {options.width, kClasses};
}

ResNet18& placed(ResNet18& model, const TrainerOptions& options, const Placement& placement) {
  model.to(placement.device, options.memory == Memory::kChannelsLast
                                 ? at::MemoryFormat::ChannelsLast
                                 : at::MemoryFormat::Contiguous);
  return model;
}

SgdOptions sgd_options(const TrainerOptions& options) {
  return {options.momentum, options.weight_decay,
          options.nesterov == Switch::kOn ? Nesterov::kOn : Nesterov::kOff,
          options.decay == Decay::kAll ? DecayOn::kAll : DecayOn::kMatrices};
}

std::unique_ptr<Batches> batches_for(const ImageSet& set, const TrainerOptions& options,
                                     const Placement& placement) {
  return placement.device.is_cpu() ? host_batches(set, layout_of(options))
                                   : device_batches(set, layout_of(options), placement.device);
}

DataSet load_data(const TrainerOptions& options) {
  return load_data_set({options.data_dir, options.images == ImageSource::kGenerated,
                        options.limit_train, options.limit_test});
}

TrainingState fresh_state(const TrainerOptions& options, const DataOrder& order, int world) {
  TrainingState state;
  state.total_steps = total_steps(options, order.batches_per_epoch());
  state.seed = options.seed;
  state.samples = order.options().samples;
  state.batch_size = options.batch_size;
  state.width = options.width;
  state.world = world;
  state.torch_version = DDPRUN_TORCH_VERSION;
  return state;
}

// A new round shuts the sockets that are made in its lifetime, and so ends a wait for a lost rank.
struct NotedSockets {
  NotedSockets() { sockets_begin(); }
  ~NotedSockets() { sockets_end(); }
  NotedSockets(const NotedSockets&) = delete;
  NotedSockets& operator=(const NotedSockets&) = delete;
};

}  // namespace

Session::Session(const TrainerOptions& given, const WorkerEnvironment& environment)
    : options(given),
      folder(given.model_dir, given.model_filename),
      saver(given, folder),
      world(environment),
      placement(choose_placement(given, environment)),
      data(load_data(given)),
      order({data.train.size(), given.batch_size, given.seed}),
      model(seeded(given)),
      sgd(placed(model, given, placement).parameters(), sgd_options(given)),
      train_batches(batches_for(data.train, given, placement)),
      test_batches(batches_for(data.test, given, placement)),
      schedule(schedule_for(given, order.batches_per_epoch())),
      state(fresh_state(given, order, environment.world_size)),
      train_sums(placement.device) {
  if (given.micro_batches > 0) tree.emplace(model);
}

std::optional<RecoveryTimes> RecoveryClock::times() const {
  if (!failed) return std::nullopt;
  return RecoveryTimes{left - *failed, told - left, joined - told, Clock::now() - joined};
}

void Session::join(const WorkerEnvironment& environment) {
  world = environment;
  state.world = world.world_size;
  at(Moment::kJoin);
  auto wanted = group_options(world, placement);
  if (worlds != nullptr) wanted.outdated = [this] { return worlds->pending(); };
  std::optional<NotedSockets> noted;
  if (worlds != nullptr) noted.emplace();
  group = std::make_unique<Group>(wanted);
  recovery.joined = RecoveryClock::Clock::now();
  precision = agree_on_precision(options.amp, placement.device, *group);
  if (options.sample_log) {
    sample_log.emplace(options.sample_log->string() + ".rank" + std::to_string(world.rank) +
                       ".csv");
  }
}

void Session::leave() {
  if (tree) tree->restore();
  const auto buffers = detached(model.buffers());
  for (std::size_t i = 0; i < buffers_before.size(); ++i) buffers[i].copy_(buffers_before[i]);
  buffers_before.clear();
  for (auto& item : model.parameters()) item.tensor.mutable_grad() = at::Tensor();
  train_sums = DeviceSums(placement.device);
  model.set_mode(Mode::kTrain);
  // Frees reductions that are under way and would be waited for.
  if (worlds != nullptr) abandon_sockets();
  parallel.reset();
  group.reset();
}

// The first pass of a process needs memory and kernels that the others find ready.
void Session::warm_up() {
  const auto images = order.global_batch(0);
  const auto parts = std::max<std::size_t>(1, options.micro_batches);
  const auto batch = train_batches->batch(
      std::span(images).first((images.size() + parts - 1) / parts), std::nullopt);
  const auto buffers = detached(model.buffers());
  std::vector<at::Tensor> before;
  for (const auto& buffer : buffers) before.push_back(buffer.clone());
  model.forward(batch.images).sum().backward();
  for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].copy_(before[i]);
  for (auto& item : model.parameters()) item.tensor.mutable_grad() = at::Tensor();
}

void Session::report(const std::string& problem) {
  if (!problem.empty() && reporter) reporter->say(problem + " (training continues)");
}

void Session::log_committed() {
  if (sample_log && uncommitted) {
    const auto step = uncommitted->step;
    sample_log->record_all(*uncommitted,
                           {order.epoch_of(step), order.batch_of(step), world.world_size});
  }
  uncommitted.reset();
}

ModelState Session::model_state() const {
  return {model.parameters(), model.buffers(), sgd.momentum()};
}

}  // namespace ddprun::trainer

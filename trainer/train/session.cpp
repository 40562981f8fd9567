#include "trainer/train/session.hpp"

#include <ATen/Context.h>

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

}  // namespace

Session::Session(const TrainerOptions& given, const WorkerEnvironment& environment)
    : options(given),
      world(environment),
      placement(choose_placement(given, environment)),
      group(group_options(environment, placement)),
      precision(agree_on_precision(given.amp, placement.device, group)),
      data(load_data(given)),
      order({data.train.size(), given.batch_size, given.seed}),
      model(seeded(given)),
      sgd(placed(model, given, placement).parameters(), sgd_options(given)),
      train_batches(batches_for(data.train, given, placement)),
      test_batches(batches_for(data.test, given, placement)),
      schedule(schedule_for(given, order.batches_per_epoch())),
      state(fresh_state(given, order, environment.world_size)),
      train_sums(placement.device),
      folder(given.model_dir, given.model_filename) {
  if (given.sample_log) {
    sample_log.emplace(given.sample_log->string() + ".rank" + std::to_string(world.rank) + ".csv");
  }
}

ModelState Session::model_state() const {
  return {model.parameters(), model.buffers(), sgd.momentum()};
}

}  // namespace ddprun::trainer

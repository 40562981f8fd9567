// Flags for the model and its training (flags.hpp).
#include "trainer/limits.hpp"
#include "trainer/options/flags.hpp"

namespace ddprun::trainer {
namespace {

using O = TrainerOptions;
using V = FlagValue;

constexpr double kBig = 1e6;
constexpr Interval kFactor{0, 1e12, Interval::Ends::kOpenBelow};

ScheduleKind schedule_of(const V& value) {
  Names names;
  for (const auto& name : schedule_names())
    names.emplace_back(name, static_cast<int>(names.size()));
  const auto index = static_cast<std::size_t>(one_of(value, names));
  return schedule_kinds()[index];
}

std::uint32_t count_of(const V& value) {
  return static_cast<std::uint32_t>(whole_in(value, {0, kSamplesMax}));
}

const char* const kRun = "Run";
const char* const kOptimizer = "Optimizer";
const char* const kSchedule = "Learning rate";
const char* const kImages = "Images";

}  // namespace

std::vector<Flag> optimizer_flags() {
  return {
      {"--width", "N", "channels of the first stage; 64 is ResNet-18 [64]", kRun,
       [](O& o, const V& v) {
         o.width = static_cast<int>(whole_in(v, {1, kWidthMax}));
       }},
      {"--epochs,--num-epochs", "N", "passes over the training set [2]", kRun,
       [](O& o, const V& v) {
         o.epochs = static_cast<int>(whole_in(v, {1, kEpochsMax}));
       }},
      {"--steps", "N", "stop after N steps in total; overrides --epochs", kRun,
       [](O& o, const V& v) {
         o.steps = whole_in(v, {1, kStepsMax});
       }},
      {"--batch-size", "N", "images per step, over all ranks [128]", kRun,
       [](O& o, const V& v) {
         o.batch_size = static_cast<std::uint32_t>(whole_in(v, {1, kBatchMax}));
       }},
      {"--seed,--random-seed", "N", "random seed of weights, order and augmentation [0]", kRun,
       [](O& o, const V& v) {
         o.seed = whole_in(v, {0, ~std::uint64_t{0}});
       }},

      {"--lr,--learning-rate", "X", "highest learning rate of the schedule [0.2]", kOptimizer,
       [](O& o, const V& v) {
         o.lr = real_in(v, {0, kBig, Interval::Ends::kOpenBelow});
       }},
      {"--momentum", "X", "momentum of SGD [0.9]", kOptimizer,
       [](O& o, const V& v) {
         o.momentum = real_in(v, {0, 1});
       }},
      {"--nesterov", "on|off", "use Nesterov momentum [on]", kOptimizer,
       [](O& o, const V& v) { o.nesterov = switch_of(v); }, "on"},
      {"--weight-decay", "X", "[0.0005]", kOptimizer,
       [](O& o, const V& v) {
         o.weight_decay = real_in(v, {0, kBig});
       }},
      {"--decay", "matrices|all",
       "apply weight decay to tensors with more than one dimension, or to all [matrices]",
       kOptimizer,
       [](O& o, const V& v) {
         o.decay = static_cast<Decay>(one_of(v, {{"matrices", 0}, {"all", 1}}));
       }},
      {"--label-smoothing", "X", "label smoothing of the training loss [0.1]", kOptimizer,
       [](O& o, const V& v) {
         o.label_smoothing = real_in(v, {0, 1});
       }},
      {"--deterministic", "N",
       "the same bits for every world size: N micro-batches per step, summed in a fixed order, "
       "one thread unless --threads is given; 0: off [0; 8 without N]",
       kRun,
       [](O& o, const V& v) {
         o.micro_batches = static_cast<std::uint32_t>(whole_in(v, {0, kMicroBatchesMax}));
       },
       "8"},
  };
}

std::vector<Flag> schedule_flags() {
  return {
      {"--schedule", "NAME",
       "constant, multi-step, cosine, one-cycle, warmup-linear [warmup-linear]", kSchedule,
       [](O& o, const V& v) { o.schedule.kind = schedule_of(v); }},
      {"--warmup", "X", "fraction of the run for warm-up [0.2; one-cycle 0.3; others 0]", kSchedule,
       [](O& o, const V& v) {
         o.schedule.warmup = real_in(v, {0, 1});
       }},
      {"--milestones", "E,E", "epochs at which multi-step multiplies by --gamma", kSchedule,
       [](O& o, const V& v) { o.schedule.milestones = rising_reals(v); }},
      {"--gamma", "X", "factor of multi-step [0.1]", kSchedule,
       [](O& o, const V& v) { o.schedule.gamma = real_in(v, kFactor); }},
      {"--lr-min", "X", "final learning rate of cosine [0]", kSchedule,
       [](O& o, const V& v) {
         o.schedule.minimum = real_in(v, {0, kBig});
       }},
      {"--div-factor", "X", "one-cycle starts at lr / X [25]", kSchedule,
       [](O& o, const V& v) { o.schedule.div_factor = real_in(v, kFactor); }},
      {"--final-div-factor", "X", "one-cycle ends at its initial rate / X [10000]", kSchedule,
       [](O& o, const V& v) { o.schedule.final_div_factor = real_in(v, kFactor); }},
  };
}

std::vector<Flag> image_flags() {
  return {
      {"--data-dir", "DIR",
       "contains cifar-10-batches-bin or its files; see scripts/get-cifar10 [data]", kImages,
       [](O& o, const V& v) { o.data_dir = v.text; }},
      {"--generated", "on|off", "use synthetic images: accuracy is meaningless [off]", kImages,
       [](O& o, const V& v) {
         o.images = switch_of(v) == Switch::kOn ? ImageSource::kGenerated : ImageSource::kFiles;
       },
       "on"},
      {"--limit-train", "N", "use the first N training images; 0: all [0]", kImages,
       [](O& o, const V& v) { o.limit_train = count_of(v); }},
      {"--limit-test", "N", "use the first N test images; 0: all [0]", kImages,
       [](O& o, const V& v) { o.limit_test = count_of(v); }},
      {"--augment", "on|off", "random crop and alternating flip [on]", kImages,
       [](O& o, const V& v) { o.augment = switch_of(v); }, "on"},
  };
}

}  // namespace ddprun::trainer

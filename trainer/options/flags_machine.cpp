// Flags for the machine and the files (flags.hpp).
#include "trainer/error.hpp"
#include "trainer/limits.hpp"
#include "trainer/options/flags.hpp"

namespace ddprun::trainer {
namespace {

using O = TrainerOptions;
using V = FlagValue;

std::filesystem::path path_of(const V& value) {
  if (value.text.empty()) throw UsageError(value.flag + " is empty; give a path");
  return value.text;
}

std::string file_name_of(const V& value) {
  if (value.text.empty() || value.text == "." || value.text == ".." ||
      value.text.find('/') != std::string::npos) {
    throw UsageError(value.flag + " is \"" + value.text +
                     "\"; give a name without a folder, and pass the folder with --model-dir");
  }
  return value.text;
}

Resume resume_of(const V& value) {
  if (value.text == "auto") return {Resume::Kind::kAuto, {}};
  if (value.text == "none") return {Resume::Kind::kNone, {}};
  return {Resume::Kind::kFile, path_of(value)};
}

const char* const kMachine = "Machine";
const char* const kFiles = "Files";

}  // namespace

std::vector<Flag> machine_flags() {
  return {
      {"--recover", "on|off",
       "train on in this process when other ranks are lost; needs ddprun --restart=failed [off]",
       kMachine, [](O& o, const V& v) { o.recover = switch_of(v); }, "on"},
      {"--check-every", "N",
       "compare the weights of all ranks every N steps; a rank that differs from the majority "
       "takes "
       "its state; 0: never [0]",
       kMachine,
       [](O& o, const V& v) {
         o.check_every = whole_in(v, {0, kStepsMax});
       }},
      {"--device", "auto|cpu|cuda", "auto: cuda if available [auto]", kMachine,
       [](O& o, const V& v) {
         o.device = static_cast<DeviceChoice>(one_of(v, {{"auto", 0}, {"cpu", 1}, {"cuda", 2}}));
       }},
      {"--amp", "auto|on|off", "bf16 autocast; auto: if it is faster [auto]", kMachine,
       [](O& o, const V& v) {
         o.amp = static_cast<Amp>(one_of(v, {{"auto", 0}, {"on", 1}, {"off", 2}, {"bf16", 1}}));
       },
       "on"},
      {"--channels-last", "on|off", "memory format of images and weights [on]", kMachine,
       [](O& o, const V& v) {
         o.memory =
             one_of(v, {{"on", 1}, {"off", 0}}) == 1 ? Memory::kChannelsLast : Memory::kContiguous;
       },
       "on"},
      {"--threads", "N", "threads per worker; 0: cores / workers per node [0]", kMachine,
       [](O& o, const V& v) {
         o.threads = static_cast<int>(whole_in(v, {0, kThreadsMax}));
       }},
      {"--local-rank", "N", "same as LOCAL_RANK, for launchers that pass it as a flag", kMachine,
       [](O& o, const V& v) {
         o.local_rank = static_cast<int>(whole_in(v, {0, kWorldSizeMax}));
       }},

      {"--model-dir", "DIR", "checkpoints and metrics [runs/resnet18]", kFiles,
       [](O& o, const V& v) { o.model_dir = path_of(v); }},
      {"--model-filename", "NAME",
       "writes NAME.last, NAME.previous, NAME.best (.safetensors) [resnet18]", kFiles,
       [](O& o, const V& v) { o.model_filename = file_name_of(v); }},
      {"--resume", "auto|none|FILE", "resume from the last checkpoint, never, or from FILE [auto]",
       kFiles, [](O& o, const V& v) { o.resume = resume_of(v); }, "auto"},
      {"--checkpoint-every", "TIME", "30s, 2m, …; off: only at the end of an epoch [30s]", kFiles,
       [](O& o, const V& v) { o.checkpoint_every = duration_of(v); }},
      {"--checkpoint-budget", "PERCENT",
       "save as often as checkpoints cost at most PERCENT of the training time; overrides "
       "--checkpoint-every",
       kFiles,
       [](O& o, const V& v) {
         o.checkpoint_budget = real_in(v, {kBudgetPercentMin, 100}) / 100;
       }},
      {"--checkpoint-async", "on|off",
       "write checkpoints while training continues, from a copy in host memory [on]", kFiles,
       [](O& o, const V& v) { o.checkpoint_async = switch_of(v); }, "on"},
      {"--log-every", "N", "steps between rows of metrics; 0: one per epoch [10]", kFiles,
       [](O& o, const V& v) {
         o.log_every = whole_in(v, {0, kStepsMax});
       }},
      {"--export", "FILE", "at the end, write the best weights in a format that torch.load opens",
       kFiles, [](O& o, const V& v) { o.export_file = path_of(v); }},
      {"--sample-log", "PREFIX", "write PREFIX.rank<N>.csv: a digest of the images of every step",
       kFiles, [](O& o, const V& v) { o.sample_log = path_of(v); }},
  };
}

}  // namespace ddprun::trainer

// The trainer's command line as a value. parse_options() is pure: no environment, no files, no
// exit. Defaults are the CPU recipe: batch size 128, Nesterov momentum, warm-up followed by linear
// decay. Errors: UsageError (exit code 2) with one sentence that names the flag.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "trainer/schedule/schedule.hpp"

namespace ddprun::trainer {

enum class Amp { kAuto, kOn, kOff };  // auto: on if the hardware has bf16
enum class DeviceChoice { kAuto, kCpu, kCuda };
enum class Memory { kContiguous, kChannelsLast };
enum class Switch { kOff, kOn };
enum class Decay { kMatrices, kAll };  // kMatrices: only tensors of more than one dimension
enum class ImageSource { kFiles, kGenerated };

/// --resume none | auto | PATH.
struct Resume {
  enum class Kind { kNone, kAuto, kFile } kind = Kind::kAuto;
  std::filesystem::path file;  // for kFile
};

/// A learning-rate schedule in the user's units; schedule_for() converts it to steps.
struct ScheduleChoice {
  ScheduleKind kind = ScheduleKind::kWarmupLinear;
  std::optional<double> warmup;      // fraction of the run; nullopt: the schedule's default
  std::vector<double> milestones{};  // epochs, ascending
  double gamma = 0.1;
  double minimum = 0.0;
  double div_factor = 25.0;
  double final_div_factor = 1e4;
};

struct TrainerOptions {
  // Model and length of the training.
  int width = 64;  // channels of the first stage; 64 is ResNet-18
  int epochs = 2;
  std::optional<std::uint64_t> steps;  // stop after this total number of steps; overrides epochs
  std::uint32_t batch_size = 128;      // global: split across ranks
  std::uint64_t seed = 0;
  // Optimizer.
  double lr = 0.2;
  double momentum = 0.9;
  Switch nesterov = Switch::kOn;
  double weight_decay = 5e-4;
  Decay decay = Decay::kMatrices;
  double label_smoothing = 0.1;
  std::uint32_t micro_batches = 0;  // of --deterministic, per step; 0: off
  ScheduleChoice schedule;
  // Images.
  std::filesystem::path data_dir = "data";
  ImageSource images = ImageSource::kFiles;
  std::uint32_t limit_train = 0;  // 0: all
  std::uint32_t limit_test = 0;
  Switch augment = Switch::kOn;
  // Machine.
  DeviceChoice device = DeviceChoice::kAuto;
  Amp amp = Amp::kAuto;
  Memory memory = Memory::kChannelsLast;
  int threads = 0;                // per worker; 0: cores / local world size
  std::optional<int> local_rank;  // as given; must match LOCAL_RANK if that is set
  // Files.
  std::filesystem::path model_dir = "runs/resnet18";
  std::string model_filename = "resnet18";
  Resume resume;
  std::optional<std::filesystem::path> export_file;
  std::optional<std::filesystem::path> sample_log;     // prefix; ".rank<N>.csv" is appended
  std::chrono::milliseconds checkpoint_every{30'000};  // 0: only at the end of an epoch
  std::optional<double> checkpoint_budget;  // share of the training time, instead of the above
  Switch checkpoint_async = Switch::kOn;
  Switch recover = Switch::kOff;
  std::uint64_t check_every = 0;  // steps; 0: never
  std::uint64_t log_every = 10;   // steps; 0: only at the end of an epoch
};

/// The environment variables that the parser uses.
struct OptionsEnvironment {
  std::optional<std::string> local_rank;  // LOCAL_RANK
};

struct HelpText {
  std::string text;
};

/// `arguments` excludes the program name. Throws UsageError.
[[nodiscard]] std::variant<TrainerOptions, HelpText> parse_options(
    std::span<const std::string> arguments, const OptionsEnvironment& environment);

/// Total number of steps: --steps if given, otherwise epochs * batches per epoch.
[[nodiscard]] std::uint64_t total_steps(const TrainerOptions& options,
                                        std::uint64_t batches_per_epoch);
/// The schedule in steps, with the defaults of its kind.
[[nodiscard]] ScheduleOptions schedule_for(const TrainerOptions& options,
                                           std::uint64_t batches_per_epoch);

}  // namespace ddprun::trainer

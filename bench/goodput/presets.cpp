#include "bench/goodput/presets.hpp"

#include <algorithm>

namespace ddprun::bench {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// "worker fails -> next round", 10,000 agents over sockets: wall time per agent.
constexpr Duration kPerNode = microseconds(15);
constexpr Duration kLink = microseconds(500);
// From two agents: SIGKILL of a worker to the last new main in 2.2 ms, of an agent in 2.0 ms.
constexpr Duration kDetect = milliseconds(1);
constexpr Duration kStop = milliseconds(1);

constexpr Times measured(Duration start, Duration rebuild, Duration first_step) {
  return {kDetect, kPerNode, kLink, kStop, start, rebuild, Duration(0), first_step};
}
/// Known as one number: it is a start.
constexpr Times whole(Duration time) {
  return {Duration(0), Duration(0), Duration(0), Duration(0),
          time,        Duration(0), Duration(0), Duration(0)};
}

// docs/internals/RECOVERY-MEASURED.md: of a whole recovery of 178 ms; the medians of its phases
// add up to 175.
constexpr Times kSpare{milliseconds(23), kPerNode,        kLink,
                       milliseconds(23), Duration(0),     milliseconds(14),
                       milliseconds(55), milliseconds(63)};

constexpr Restart kAll = Restart::kAll;
constexpr std::array<Preset, 9> kPresets{{
    {"spare", "ddprun --restart=failed --spares, the C++ trainer, 4 Gloo ranks", Restart::kFailed,
     kSpare},
    {"warm", "ddprun --warm, 2 Gloo ranks, laboratory", kAll,
     measured(milliseconds(64), milliseconds(90), milliseconds(10))},
    {"cold", "ddprun, 2 Gloo ranks, laboratory", kAll,
     measured(milliseconds(4662), milliseconds(3989), milliseconds(6))},
    {"torchrun", "torchrun, 2 Gloo ranks, laboratory", kAll,
     measured(milliseconds(13465), milliseconds(5776), milliseconds(12))},
    {"llama-3", "10 min, as at Llama 3's rate", kAll, whole(seconds(600))},
    {"ft-hsdp", "FT-HSDP at 100k: 3 min", kAll, whole(seconds(180))},
    {"flash-recovery", "FlashRecovery at 4,800: 150 s", kAll, whole(seconds(150))},
    {"deadpool", "DeadPool at 512: 40 s", kAll, whole(seconds(40))},
    {"train-mover", "TrainMover at 1,024: 20 s", kAll, whole(seconds(20))},
}};

}  // namespace

const std::array<Preset, 9>& presets() {
  return kPresets;
}

std::optional<Preset> preset_of(std::string_view name) {
  const auto found = std::find_if(kPresets.begin(), kPresets.end(),
                                  [name](const Preset& preset) { return preset.name == name; });
  return found == kPresets.end() ? std::nullopt : std::optional(*found);
}

Duration mtbf_of(int gpus) {
  const std::chrono::duration<double> period = std::chrono::hours(24 * 54);
  return std::chrono::duration_cast<Duration>(period / 419.0 * (16384.0 / gpus));
}

}  // namespace ddprun::bench

// Times of recoveries: what was measured with ddprun and torchrun, and what was published.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "bench/goodput/cluster.hpp"

namespace ddprun::bench {

struct Preset {
  std::string_view name;
  std::string_view source;
  Restart restart;
  Times times;
};

[[nodiscard]] const std::array<Preset, 9>& presets();
[[nodiscard]] std::optional<Preset> preset_of(std::string_view name);

/// Llama 3: 419 unexpected interruptions in 54 days on 16,384 GPUs; the rate is per GPU.
[[nodiscard]] Duration mtbf_of(int gpus);

}  // namespace ddprun::bench

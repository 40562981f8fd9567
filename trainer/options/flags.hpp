// The table of the trainer's flags: names, help, and how a value is applied to the options.
// options.cpp passes it to CLI11, so that help and parser cannot disagree. Pure.
#pragma once

#include <string>
#include <vector>

#include "trainer/options/options.hpp"
#include "trainer/options/parse_value.hpp"

namespace ddprun::trainer {

struct Flag {
  std::string names;  // "--epochs,--num-epochs": messages use the first
  std::string value;  // "N", "auto|on|off"
  std::string help;
  std::string group;
  void (*apply)(TrainerOptions& options, const FlagValue& value);
  std::string bare{};  // the value if the flag is given without one; empty: a value is required
};

[[nodiscard]] inline Switch switch_of(const FlagValue& value) {
  return one_of(value, {{"on", 1}, {"off", 0}}) == 1 ? Switch::kOn : Switch::kOff;
}

[[nodiscard]] const std::vector<Flag>& all_flags();
[[nodiscard]] std::vector<Flag> optimizer_flags();
[[nodiscard]] std::vector<Flag> schedule_flags();
[[nodiscard]] std::vector<Flag> image_flags();
[[nodiscard]] std::vector<Flag> machine_flags();

}  // namespace ddprun::trainer

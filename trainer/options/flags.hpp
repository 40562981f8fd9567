// The table of the trainer's flags: name, help, and what its text does to the options. options.cpp
// gives it to CLI11, so help and parser cannot disagree. Pure.
#pragma once

#include <string>
#include <vector>

#include "trainer/options/options.hpp"
#include "trainer/options/parse_value.hpp"

namespace ddprun::trainer {

struct Flag {
  std::string names;  // "--epochs,--num-epochs": the first is the one that messages use
  std::string value;  // "N", "auto|on|off"
  std::string help;
  std::string group;
  void (*apply)(TrainerOptions& options, const FlagValue& value);
  std::string bare{};  // the value when the flag stands alone; empty: it needs one
};

[[nodiscard]] const std::vector<Flag>& all_flags();
[[nodiscard]] std::vector<Flag> optimizer_flags();
[[nodiscard]] std::vector<Flag> schedule_flags();
[[nodiscard]] std::vector<Flag> picture_flags();
[[nodiscard]] std::vector<Flag> machine_flags();

}  // namespace ddprun::trainer

// Setting: the typed value of one option, and where it came from, for sentences about it. Plain
// data.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "launcher/options/option_table.hpp"

namespace ddprun {

/// Where a value comes from; a later one takes precedence (docs/TORCHRUN.md, "A file of options").
enum class Source { kDefault, kFile, kScheduler, kVariable, kCommandLine };

struct Origin {
  std::string name;  // "--nnodes", "PET_NNODES", "Slurm step 9.0's --nnodes", "run.toml:3: nnodes"
  std::string text;  // the value as given, or the default
  bool given = false;  // not the default
  bool flag = false;   // a name without a value
  Source source = Source::kDefault;
  OptionId id = OptionId::kCount;
  std::string from = {};  // "command line", "PET_NNODES", "Slurm step 9.0", "run.toml:3", "default"

  /// "--nnodes=2", or the name of a flag.
  [[nodiscard]] std::string shown() const { return flag ? name : name + "=" + text; }
  /// "--nnodes='2'", for a value that is wrong.
  [[nodiscard]] std::string quoted() const { return name + "='" + text + "'"; }
};

template <class Value>
struct Setting : Origin {
  Value value{};
};

/// By the user, with precedence over a scheduler.
[[nodiscard]] inline bool precedes_scheduler(const Origin& origin) {
  return origin.given && origin.source > Source::kScheduler;
}

/// That an option of a file is not used, because `by`, of higher precedence, excludes it.
[[nodiscard]] inline std::string left_out_note(const Origin& left, const std::string& by) {
  return left.shown() + " not used: " + by + " takes precedence over the file";
}

/// A scheduler's value, unless the option's own takes precedence: sentences call it "JOB's
/// --nnodes".
template <class Value>
void supply(Setting<Value>& setting, Value value, std::string text, const std::string& job) {
  if (precedes_scheduler(setting)) return;
  setting = {{job + "'s " + dashed(spec_of(setting.id)), std::move(text), true, setting.flag,
              Source::kScheduler, setting.id, job},
             std::move(value)};
}

/// "--rdzv-id and PET_MASTER_ADDR": the names of those that were given, or nothing.
[[nodiscard]] std::string given_names(std::initializer_list<const Origin*> candidates);

}  // namespace ddprun

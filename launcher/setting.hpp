// Setting: the typed value of one option, and where it came from, for sentences about it. Plain
// data.
#pragma once

#include <initializer_list>
#include <string>

namespace ddprun {

struct Origin {
  std::string name;    // "--nnodes", "PET_NNODES", "Slurm step 9.0's --nnodes"
  std::string text;    // the value as given, or the default
  bool given = false;  // on the command line, in a variable or by a scheduler: not the default
  bool flag = false;   // a name without a value

  /// "--nnodes=2", or the name of a flag.
  [[nodiscard]] std::string shown() const { return flag ? name : name + "=" + text; }
  /// "--nnodes='2'", for a value that is wrong.
  [[nodiscard]] std::string quoted() const { return name + "='" + text + "'"; }
};

template <class Value>
struct Setting : Origin {
  Value value{};
};

/// A scheduler's value for an option that was not given: sentences call it "JOB's --nnodes".
template <class Value>
void supply(Setting<Value>& setting, Value value, std::string text, const std::string& job) {
  if (setting.given) return;
  setting = {{job + "'s " + setting.name, std::move(text), true, setting.flag}, std::move(value)};
}

/// "--rdzv-id and PET_MASTER_ADDR": the names of those that were given, or nothing.
[[nodiscard]] std::string given_names(std::initializer_list<const Origin*> candidates);

}  // namespace ddprun

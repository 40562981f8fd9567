// What can go wrong in a simulated life: a table of names and weights. A seed draws from it;
// `sim --only NAME` and `sim --weight NAME=N` change the weights.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddprun::sim {

class Storm;

struct Fault {
  std::string_view name;
  int weight;  // how often, relative to the others
  /// Whether an agent that is up and reachable notices nothing: a life with only such faults is as
  /// if there were none.
  bool harmless;
  void (*strike)(Storm& storm, int node);
};

class Faults {
 public:
  Faults();
  /// False: no fault has this name.
  [[nodiscard]] bool only(const std::string& name);
  /// "NAME=N"; false: no such name, or no such number.
  [[nodiscard]] bool weigh(const std::string& assignment);
  /// `draw` gives a number in 1..total().
  [[nodiscard]] const Fault& pick(int draw) const;
  [[nodiscard]] int total() const;
  /// One line per fault.
  [[nodiscard]] std::string list() const;

 private:
  std::vector<Fault> table_;
};

}  // namespace ddprun::sim

// What can go wrong in a simulated life: tables of names and weights. A seed draws from one;
// --only NAME and --weight NAME=N change the weights.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/sim/world.hpp"

namespace ddprun::sim {

struct WorkerFault {
  std::string_view name;
  int weight;     // how often, relative to the others
  bool harmless;  // see Faults::Fault
  void (*strike)(World& world, int node);
};
/// Those of every world.
[[nodiscard]] std::span<const WorkerFault> worker_faults();

template <class Storm>
class Faults {
 public:
  struct Fault {
    std::string_view name;
    int weight;
    /// Whether an agent that is up and reachable notices nothing: a life with only such faults is
    /// as if there were none.
    bool harmless;
    std::function<void(Storm& storm, int node)> strike;
  };
  /// Worker faults are added.
  explicit Faults(std::vector<Fault> table) : table_(std::move(table)) {
    for (const WorkerFault& fault : worker_faults()) {
      table_.push_back(
          {fault.name, fault.weight, fault.harmless,
           [strike = fault.strike](Storm& storm, int node) { strike(storm.world(), node); }});
    }
  }
  /// False: no fault has this name.
  [[nodiscard]] bool only(std::string_view name) {
    for (Fault& fault : table_) fault.weight = fault.name == name ? fault.weight : 0;
    return find(name) != table_.end();
  }
  [[nodiscard]] bool weigh(std::string_view name, int weight) {
    const auto fault = find(name);
    if (fault == table_.end() || weight < 0) return false;
    fault->weight = weight;
    return true;
  }
  /// "NAME=N"; false: no such name, or no such number.
  [[nodiscard]] bool weigh(const std::string& assignment) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos) return false;
    return weigh(std::string_view(assignment).substr(0, equals),
                 std::atoi(assignment.c_str() + equals + 1));
  }
  [[nodiscard]] int total() const {
    return std::accumulate(table_.begin(), table_.end(), 0,
                           [](int sum, const Fault& fault) { return sum + fault.weight; });
  }
  /// `draw` gives a number in 1..total().
  [[nodiscard]] const Fault& pick(int draw) const {
    for (const Fault& fault : table_) {
      draw -= fault.weight;
      if (draw <= 0) return fault;
    }
    return table_.back();
  }
  /// One line per fault.
  [[nodiscard]] std::string list() const {
    std::string text;
    for (const Fault& fault : table_) {
      text += std::to_string(fault.weight) + "\t" + std::string(fault.name) + "\n";
    }
    return text;
  }

 private:
  [[nodiscard]] auto find(std::string_view name) {
    return std::find_if(table_.begin(), table_.end(),
                        [name](const Fault& fault) { return fault.name == name; });
  }

  std::vector<Fault> table_;
};

}  // namespace ddprun::sim

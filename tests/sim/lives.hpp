// A program of seeded lives: `--first SEED --count N`, or `--seeds SEED N`, run them. A violation
// prints its seed and the command that replays it with a trace; exit 1. Any count is a soak.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace ddprun::sim {

using Print = std::function<void(const std::string&)>;

struct Summary {
  int rounds = 0;
  int restarts = 0;
  std::uint64_t steps = 0;
  std::map<int, int> exits;  // how often each exit code
  std::map<std::string_view, int> known_violations;
  std::set<std::string> transitions;  // see World
  bool two_runs = false;              // that began apart, and do not know of each other
};

struct LivesProgram {
  std::string codes_of;  // "agents": whose exit codes a summary has
  /// Throws Violation. `print`: empty, or gets the trace.
  std::function<Summary(std::uint64_t seed, const Print& print)> life;
  std::function<std::string()> list;  // of the faults
  /// Options that change the lives; false: there is no such option, or value.
  std::function<bool(const std::string& option, const std::string& value)> take;
};
/// The program that draws from these faults.
template <class Faults>
[[nodiscard]] LivesProgram program_of(std::string codes_of, Faults& faults,
                                      decltype(LivesProgram::life) life) {
  return {std::move(codes_of), std::move(life), [&faults] { return faults.list(); },
          [&faults](const std::string& option, const std::string& value) {
            if (option == "--only") return faults.only(value);
            return option == "--weight" && faults.weigh(value);
          }};
}

[[nodiscard]] int run_lives(int argc, char** argv, const LivesProgram& program);

}  // namespace ddprun::sim

// ReceivedSignal: a signal to ddprun and where it came from; the rule which of two are one. Pure,
// no thread rule.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "base/clock.hpp"

namespace ddprun {

struct ReceivedSignal {
  int number = 0;
  std::string from{};      // "slurmstepd (pid 4021)"; empty: no process, or not known
  bool by_kernel = false;  // a key, or a terminal that was closed
  bool all_nodes = false;  // it ends the run on every node, not the part of this node alone
};

/// "SIGTERM from slurmstepd (pid 4021)", "SIGTERM received".
[[nodiscard]] std::string received_text(const ReceivedSignal& signal);

/// Whether it ends a process that does nothing about it.
[[nodiscard]] bool ends_by_default(int signal);

/// A process that signals every process of a job reaches the agent and the front, which forwards
/// it. One that came directly and one of the same number that was forwarded, within a second, are
/// one signal; two of either kind are two.
class SignalPairs {
 public:
  enum class Way { kDirect, kForwarded };
  [[nodiscard]] bool completes_pair(int number, Way way, TimePoint now);

 private:
  static constexpr std::size_t kNumbers = 65;
  std::array<std::array<std::optional<TimePoint>, kNumbers>, 2> unpaired_ = {};
};

}  // namespace ddprun

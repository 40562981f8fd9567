// Times of a run's rounds, and of what lies between two, on one clock. Pure.
//
// Clocks of hosts are never compared: two nodes share the moments at which their rounds were
// decided, which are apart by the time of a message. Every interval lies inside the record and none
// overlaps the next one, so that no sum of parts exceeds the whole.
#pragma once

#include <map>
#include <vector>

#include "agent/explain/records.hpp"

namespace ddprun::explain {

/// A part of the time of a run, in milliseconds since the first ddprun with a record started.
struct Span {
  double from = 0;
  double to = 0;
  [[nodiscard]] double ms() const { return to - from; }
};

/// From when all ranks of a round ran: from the last start, or when those that were kept have taken
/// the round, to the first sign of the end. A node whose record breaks off does not bound it.
struct RoundTimes {
  Moment since{};  // none: they never did
  Moment end{};    // none: no record has it
  /// From the first to the last step that all ranks with a record have finished.
  std::optional<Span> steps{};
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
};

/// Of a record whose nodes are in the order in which they are told.
class Timeline {
 public:
  explicit Timeline(const Nodes& nodes);

  /// To the last event of any node whose clock is known.
  [[nodiscard]] double whole() const { return whole_; }
  [[nodiscard]] const std::map<int, RoundTimes>& rounds() const { return rounds_; }
  /// In which all ranks ran, of the rounds whose end is known.
  [[nodiscard]] double ran() const;
  /// The moment of a node, on the clock of the run; none: it shares no round with the others.
  [[nodiscard]] Moment at(std::size_t node, Moment own) const;

 private:
  void align(const Nodes& nodes);
  void add(const Nodes& nodes, int round, double after);
  void add_steps(const Nodes& nodes, int round, RoundTimes& times) const;

  std::vector<Moment> offsets_;  // by node
  std::map<int, RoundTimes> rounds_;
  double whole_ = 0;
};

/// From a round's first sign of the end until all ranks of the next one run. The phases are those
/// of the node that had all of its ranks last; they follow each other, so they add up to `whole` at
/// most.
struct Recovery {
  Moment detect{};      // from the exit to the report of the failure, or the stop, on its node
  Moment stop{};        // from the first signal until nothing is waited for
  Moment rendezvous{};  // until the next round was decided, after the stop
  Moment start{};       // until the first worker is there: directories, files, the store
  Moment spawn{};       // until all are
  Moment join{};        // until those that were kept have taken the round
  Moment whole{};
  Moment without_step{};  // from the last step before it to the first one after it
};
[[nodiscard]] Recovery recovery_after(const Nodes& nodes, const Timeline& timeline, int round);

/// What ranks that report steps got done. A step that a later round repeats does not count.
struct Goodput {
  double counted = 0;  // milliseconds
  std::int64_t repeated = 0;
  std::vector<int> without;  // rounds in which all ranks ran, and whose steps are not recorded
  bool known = false;        // a round has steps
};
[[nodiscard]] Goodput goodput_of(const Timeline& timeline);

}  // namespace ddprun::explain

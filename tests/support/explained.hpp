// What must hold of every account of a run, whatever its records say: parts never exceed the whole.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "agent/explain/explain.hpp"
#include "agent/explain/recovery.hpp"

namespace ddprun::test {

/// Empty: nothing contradicts itself. Half a microsecond is the arithmetic's.
inline std::string contradiction_in(std::vector<explain::NodeRecord> nodes) {
  constexpr double kExact = 0.0005;
  const auto exceeds = [](double part, double whole) { return part > whole + kExact; };
  const explain::Timeline timeline(nodes);
  double last = 0;
  for (const auto& [number, times] : timeline.rounds()) {
    const std::string where = " of round " + std::to_string(number);
    if (!times.since) continue;
    if (*times.since < last - kExact) return "the ranks" + where + " ran before the round began";
    last = times.end.value_or(*times.since);
    if (last < *times.since) return "the end" + where + " comes before its start";
    if (exceeds(last, timeline.whole())) return "the end" + where + " comes after that of all";
    const double end = times.end.value_or(timeline.whole());
    const bool outside = times.steps && (times.steps->from < *times.since - kExact ||
                                         times.steps->to < times.steps->from ||
                                         exceeds(times.steps->to, std::max(end, *times.since)));
    if (outside) return "the steps" + where + " are outside of it";
    const explain::Recovery recovery = explain::recovery_after(nodes, timeline, number);
    double phases = 0;
    for (const explain::Moment& phase : {recovery.detect, recovery.stop, recovery.rendezvous,
                                         recovery.start, recovery.spawn, recovery.join}) {
      phases += phase.value_or(0);
    }
    if (recovery.whole && exceeds(phases, *recovery.whole)) return "the recovery" + where;
  }
  if (exceeds(timeline.ran(), timeline.whole())) return "all ranks ran longer than the run";
  const explain::Goodput goodput = explain::goodput_of(timeline);
  if (exceeds(goodput.counted, timeline.whole())) return "steps took longer than the run";
  if (goodput.counted < 0 || goodput.repeated < 0) return "steps took less than nothing";
  return "";
}

}  // namespace ddprun::test

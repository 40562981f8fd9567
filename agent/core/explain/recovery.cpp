#include "agent/core/explain/recovery.hpp"

#include <algorithm>

namespace ddprun::explain {

namespace {

const RoundRecord* round_of(const NodeRecord& node, int round) {
  const auto found = node.rounds.find(round);
  return found == node.rounds.end() ? nullptr : &found->second;
}

/// When all ranks of this node took part; none: they never did.
Moment all_here(const RoundRecord& round) {
  return round.keeps ? round.recovered : round.all_running;
}

Moment earlier(Moment one, Moment other) {
  if (!one || !other) return one ? one : other;
  return std::min(*one, *other);
}

/// The first sign of the end on this node; none where the record breaks off.
Moment end_of_health(const NodeRecord& node, int round) {
  const RoundRecord& of = node.rounds.at(round);
  Moment end = earlier(of.stop_began, of.ended);
  for (const Exit& exit : of.exits) {
    const bool was_replaced = of.keeps && of.recovered && exit.at < *of.recovered;
    if (!was_replaced) end = earlier(end, exit.at);
  }
  if (const RoundRecord* next = round_of(node, round + 1)) end = earlier(end, next->decided);
  return end || node.outcome.empty() ? end : node.last;
}

void keep_longest(Moment& longest, Moment from, Moment to) {
  if (!from || !to) return;
  longest = std::max(longest.value_or(0), std::max(0.0, *to - *from));
}

}  // namespace

Health health_in(const std::vector<NodeRecord>& nodes, int round) {
  Health least;
  for (const NodeRecord& node : nodes) {
    const RoundRecord* of = round_of(node, round);
    if (of == nullptr) continue;
    const Moment since = all_here(*of);
    if (!since) return {};
    if (!least.since) least.since = since;
    const Moment end = end_of_health(node, round);
    if (end) least.ms = earlier(least.ms, std::max(0.0, *end - *since));
  }
  return least;
}

Recovery recovery_after(const std::vector<NodeRecord>& nodes, int round) {
  Recovery all;
  for (const NodeRecord& node : nodes) {
    const RoundRecord* of = round_of(node, round);
    if (of == nullptr) continue;
    const auto own = std::find_if(of->exits.rbegin(), of->exits.rend(), [&](const Exit& exit) {
      return of->failure && exit.rank == of->failure->rank;
    });
    if (own != of->exits.rend()) keep_longest(all.detect, own->at, of->failure->at);
    keep_longest(all.stop, of->stop_began, of->ended);
    const RoundRecord* next = round_of(node, round + 1);
    if (next == nullptr) continue;
    keep_longest(all.rendezvous, of->ended, next->decided);
    const Moment free =
        of->ended && next->decided ? std::max(*of->ended, *next->decided) : Moment();
    keep_longest(all.start, free, next->first_started);
    keep_longest(all.spawn, next->first_started, next->all_running);
    keep_longest(all.join, next->all_running, next->recovered);
    keep_longest(all.whole, end_of_health(node, round), all_here(*next));
  }
  return all;
}

}  // namespace ddprun::explain

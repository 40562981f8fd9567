#include "agent/explain/recovery.hpp"

#include <algorithm>
#include <set>

namespace ddprun::explain {

namespace {

/// When all ranks of this node took part; none: they never did.
Moment all_here(const RoundRecord& round) {
  return round.keeps ? round.recovered : round.all_running;
}

Moment earlier(Moment one, Moment other) {
  if (!one || !other) return one ? one : other;
  return std::min(*one, *other);
}

Moment later(Moment one, Moment other) {
  if (!one || !other) return one ? one : other;
  return std::max(*one, *other);
}

/// The first sign of the end on this node; none where the record breaks off.
Moment end_of_health(const NodeRecord& node, int round) {
  const RoundRecord& of = node.rounds.at(round);
  Moment end = earlier(earlier(of.stop_began, of.ended), of.stop_ordered);
  for (const Exit& exit : of.exits) {
    const bool was_replaced = of.keeps && of.recovered && exit.at < *of.recovered;
    if (!was_replaced) end = earlier(end, exit.at);
  }
  if (const RoundRecord* next = round_of(node, round + 1)) end = earlier(end, next->decided);
  return end || node.outcome.empty() ? end : node.last;
}

/// When a rank failed whose node left no record: the verdict tells how long after its node's ranks
/// ran, and those of this node ran at nearly the same time.
Moment told_failure(const Nodes& nodes, const NodeRecord& node, int round) {
  const Moment here = all_here(node.rounds.at(round));
  if (!node.told || node.verdict_round != round || node.told->given_up || !here) return {};
  const int rank = node.told->rank;
  const auto has_it = [round, rank](const NodeRecord& other) {
    const RoundRecord* of = round_of(other, round);
    if (of == nullptr) return false;
    const auto is_its = [rank](const Exit& exit) { return exit.rank == rank; };
    return std::any_of(of->exits.begin(), of->exits.end(), is_its) ||
           (of->failure && of->failure->rank == rank);
  };
  if (std::any_of(nodes.begin(), nodes.end(), has_it)) return {};
  return *here + node.told->at;
}

/// How far the clock of a node is behind that of one whose own offset is known: by the median of
/// the rounds that both have, since a node that was stopped hears of one late.
Moment distance(const NodeRecord& known, const NodeRecord& node) {
  std::vector<double> all;
  for (const auto& [number, round] : known.rounds) {
    const RoundRecord* other = round_of(node, number);
    if (other == nullptr || !round.decided || !other->decided) continue;
    all.push_back(*round.decided - *other->decided);
  }
  if (all.empty()) return std::nullopt;
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

/// The phases of a recovery on one clock, each from where the one before has ended.
class Phases {
 public:
  Phases(double from, double to) : cursor_(from), end_(std::max(from, to)) {}
  Moment until(Moment point) {
    if (!point) return std::nullopt;
    const double next = std::clamp(*point, cursor_, end_);
    const double took = next - cursor_;
    cursor_ = next;
    return took;
  }

 private:
  double cursor_;
  double end_;
};

/// When the failure of a node was known there; none: it had none, or not the first.
Moment detected(const RoundRecord& round) {
  if (!round.failure) return std::nullopt;
  const bool seen = std::any_of(round.exits.begin(), round.exits.end(),
                                [&](const Exit& exit) { return exit.rank == round.failure->rank; });
  return seen ? earlier(round.failure->at, round.stop_began) : std::nullopt;
}

}  // namespace

Timeline::Timeline(const Nodes& nodes) : offsets_(nodes.size()) {
  if (nodes.empty()) return;
  align(nodes);
  std::set<int> numbers;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!offsets_[i]) continue;
    whole_ = std::max(whole_, *offsets_[i] + nodes[i].last);
    for (const auto& [number, round] : nodes[i].rounds) numbers.insert(number);
  }
  double after = 0;
  for (const int number : numbers) {
    add(nodes, number, after);
    const RoundTimes& times = rounds_.at(number);
    after = std::max(after, times.end.value_or(times.since.value_or(after)));
  }
}

// From the first one on, through nodes that share a round.
void Timeline::align(const Nodes& nodes) {
  offsets_[0] = 0;
  for (bool found = true; found;) {
    found = false;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (std::size_t k = 0; !offsets_[i] && k < nodes.size(); ++k) {
        const Moment apart = offsets_[k] ? distance(nodes[k], nodes[i]) : std::nullopt;
        if (!apart) continue;
        offsets_[i] = *offsets_[k] + *apart;
        found = true;
      }
    }
  }
  double earliest = 0;
  for (const Moment& offset : offsets_) earliest = std::min(earliest, offset.value_or(0));
  for (Moment& offset : offsets_) {
    if (offset) *offset -= earliest;
  }
}

void Timeline::add(const Nodes& nodes, int round, double after) {
  RoundTimes& times = rounds_[round];
  bool all = true;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const RoundRecord* of = round_of(nodes[i], round);
    if (of == nullptr || !offsets_[i]) continue;
    const Moment since = at(i, all_here(*of));
    all = all && since;
    times.since = later(times.since, since);
    const Moment told = told_failure(nodes, nodes[i], round);
    times.end = earlier(times.end, at(i, earlier(end_of_health(nodes[i], round), told)));
  }
  if (!all) times.since.reset();
  if (times.since) times.since = std::max(*times.since, after);
  if (times.since && times.end) times.end = std::max(*times.since, *times.end);
  add_steps(nodes, round, times);
}

void Timeline::add_steps(const Nodes& nodes, int round, RoundTimes& times) const {
  if (!times.since) return;
  Moment from;
  Moment to;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const RoundRecord* of = round_of(nodes[i], round);
    if (of == nullptr || !offsets_[i] || !of->steps) continue;
    const Steps& steps = *of->steps;
    times.first_step = from ? std::max(times.first_step, steps.first) : steps.first;
    times.last_step = to ? std::min(times.last_step, steps.last) : steps.last;
    from = later(from, at(i, steps.from));
    to = earlier(to, at(i, steps.to));
  }
  if (!from) return;
  const double end = times.end.value_or(whole_);
  const double begun = std::clamp(*from, *times.since, std::max(*times.since, end));
  times.steps = Span{begun, std::clamp(*to, begun, std::max(begun, end))};
}

Moment Timeline::at(std::size_t node, Moment own) const {
  if (!own || !offsets_[node]) return std::nullopt;
  return *offsets_[node] + *own;
}

double Timeline::ran() const {
  double ran = 0;
  for (const auto& [number, times] : rounds_) {
    if (times.since && times.end) ran += *times.end - *times.since;
  }
  return ran;
}

Recovery recovery_after(const Nodes& nodes, const Timeline& timeline, int round) {
  Recovery recovery;
  const auto before = timeline.rounds().find(round);
  const auto after = timeline.rounds().find(round + 1);
  const auto none = timeline.rounds().end();
  if (before == none || after == none || !before->second.end) return recovery;
  const double end = *before->second.end;
  const Moment since = after->second.since;
  if (before->second.steps && after->second.steps) {
    recovery.without_step = after->second.steps->from - before->second.steps->to;
  }
  std::optional<std::size_t> last;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const RoundRecord* next = round_of(nodes[i], round + 1);
    if (next == nullptr || round_of(nodes[i], round) == nullptr) continue;
    const Moment here = timeline.at(i, all_here(*next));
    if (!last ||
        (here &&
         *here > timeline.at(*last, all_here(*round_of(nodes[*last], round + 1))).value_or(0))) {
      last = i;
    }
  }
  if (since) recovery.whole = *since - end;
  if (!last) return recovery;
  const RoundRecord& of = *round_of(nodes[*last], round);
  const RoundRecord& next = *round_of(nodes[*last], round + 1);
  const auto here = [&](Moment own) { return timeline.at(*last, own); };
  Phases phases(end, since.value_or(timeline.whole()));
  Moment known;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const RoundRecord* own = round_of(nodes[i], round);
    if (own != nullptr) known = earlier(known, timeline.at(i, detected(*own)));
  }
  recovery.detect = phases.until(known);
  if (of.stop_began) recovery.stop = phases.until(here(of.ended));
  recovery.rendezvous = phases.until(here(next.decided));
  recovery.start = phases.until(here(next.first_started));
  recovery.spawn = phases.until(here(next.all_running));
  recovery.join = phases.until(here(next.recovered));
  return recovery;
}

// From the last round back: a step counts where no later round has repeated it.
Goodput goodput_of(const Timeline& timeline) {
  Goodput goodput;
  std::optional<std::int64_t> again;  // the first step that a later round has done
  const auto& rounds = timeline.rounds();
  for (auto at = rounds.rbegin(); at != rounds.rend(); ++at) {
    const RoundTimes& times = at->second;
    if (!times.steps) {
      if (times.since) goodput.without.push_back(at->first);
      continue;
    }
    goodput.known = true;
    const std::int64_t kept = again ? std::min(times.last_step, *again - 1) : times.last_step;
    goodput.repeated += std::min(times.last_step - kept, times.last_step - times.first_step + 1);
    const auto all = static_cast<double>(times.last_step - times.first_step);
    const auto counted = static_cast<double>(std::max<std::int64_t>(0, kept - times.first_step));
    if (all > 0) goodput.counted += times.steps->ms() * counted / all;
    again = again ? std::min(*again, times.first_step) : times.first_step;
  }
  return goodput;
}

}  // namespace ddprun::explain

// Signals that end nothing. What every worker of a round must get exactly once is checked where
// nothing else happens for a while.
#include <utility>

#include "tests/sim/sole_world.hpp"
#include "tests/sim/words.hpp"

namespace ddprun::sim {

using namespace protocol;

namespace {
// Longer than links take to be there again after whatever disturbed them.
constexpr Duration kQuietBefore = seconds(8);
}  // namespace

void SoleWorld::notify_agents(const std::vector<int>& ids, int signal) {
  const TimePoint last = std::exchange(notified_, now());
  const bool alone = now() - last > 2 * kSignalMergeWindow;
  if (alone && now() - disturbed_ > kQuietBefore) expect_signal(ids);
  for (const int id : ids) {
    Node& node = nodes_[index(id)];
    if (!node.agent) continue;
    say(node.options.host + " gets signal " + std::to_string(signal) + ", which ends nothing");
    on_thread(id, node.process, [this, id, signal] { feed(id, client::SignalCame{signal}); });
  }
}

bool SoleWorld::is_in_touch(int id) const {
  const Node& node = nodes_[index(id)];
  return group_works(id) && node.group->running && node.connection >= 0 && !cut_off(id) &&
         std::string_view((*node.agent)->membership().link_name()) == "Answered";
}

// All that have a part in the live round, and can hear of it.
void SoleWorld::expect_signal(const std::vector<int>& ids) {
  if (!run_ || run_->phase() != round::Phase::kRunning || !all_run()) return;
  const RoundStamp live = run_->status(now()).round;
  const auto takes_part = [&](int id) {
    return is_in_touch(id) && nodes_[index(id)].group->round.stamp == live;
  };
  for (const int id : ids) {
    if (!takes_part(id)) return;
  }
  const TimePoint began = now();
  for (int id = 0; id < node_count(); ++id) {
    if (!takes_part(id)) continue;
    const int before = nodes_[index(id)].group->signals;
    const int generation = nodes_[index(id)].group->generation;
    timeline_.after(4 * options_.delay_max, [this, id, generation, before, began] {
      const Group* group = group_of(id, generation);
      const bool same = group != nullptr && is_in_touch(id) && disturbed_ < began;
      if (!same || notified_ != began) return;
      ++signals_checked_;
      require(group->signals == before + 1, "the workers of " + host_of(id) + " got one signal " +
                                                std::to_string(group->signals - before) + " times");
    });
  }
}

}  // namespace ddprun::sim

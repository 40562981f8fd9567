// Ranks that make no progress for a while, and what the coordinator makes of it: it may give up
// those of a round only if at one moment those of all its nodes had made none for the whole limit.
#include "tests/sim/world.hpp"

namespace ddprun::sim {

using namespace protocol;

namespace {
constexpr Duration kStacksTime = seconds(2);
}  // namespace

void World::make_quiet(int id, Duration time) {
  auto& group = nodes_[index(id)].group;
  if (!group || !group->running || group->ending() || group->quiet_since) return;
  say(host_of(id) + "'s ranks make no progress for " +
      std::to_string(std::chrono::duration_cast<milliseconds>(time).count()) + " ms");
  group->quiet_since = now();
  const int generation = group->generation;
  timeline_.after(time,
                  [this, id, generation, since = now()] { make_progress(id, generation, since); });
  if (!options_.terms.hang_timeout) return;
  timeline_.after(*options_.terms.hang_timeout,
                  [this, id, generation] { tell_quiet(id, generation); });
}

void World::make_progress(int id, int generation, TimePoint since) {
  Group* moving = group_of(id, generation);
  if (moving == nullptr || moving->quiet_since != since) return;
  moving->quiet_since.reset();
  on_group_thread(id, generation, [this, id](const Group& group) {
    feed(id, client::GroupQuiet{group.round.stamp.number, milliseconds(0), {}});
  });
}

// Again and again, as an agent that samples.
void World::tell_quiet(int id, int generation) {
  const Group* group = group_of(id, generation);
  if (group == nullptr || !group->quiet_since || group->ending()) return;
  on_group_thread(id, generation, [this, id](const Group& its) {
    if (its.quiet_since) check_hang(id, {0});
  });
  timeline_.after(*options_.terms.hang_timeout / 4,
                  [this, id, generation] { tell_quiet(id, generation); });
}

void World::check_hang(int id, const client::CheckHang& order) {
  const Group& group = *nodes_[index(id)].group;
  const int generation = group.generation;
  if (!order.echo) {
    timeline_.after(random_.between(Duration(0), kStacksTime), [this, id, generation] {
      on_group_thread(id, generation, [this, id](const Group&) { give_up_ranks(id); });
    });
    return;
  }
  const Duration lasts = group.quiet_since ? now() - *group.quiet_since : Duration(0);
  const client::GroupQuiet quiet{group.round.stamp.number, std::chrono::floor<Milliseconds>(lasts),
                                 *order.echo == 0 ? std::nullopt : order.echo};
  feed(id, quiet);
}

void World::on_hang_sent(int id, const Hang& hang) {
  auto& group = nodes_[index(id)].group;
  if (!group || group->round.stamp.number != hang.round) return;
  if (hang.echo) {
    group->asked_at = now();
    group->quiet_then = group->quiet_since ? now() - *group->quiet_since : Duration(0);
    return;
  }
  ++hangs_;
  const Duration limit = *options_.terms.hang_timeout;
  for (const Node& node : nodes_) {
    const bool here = node.agent && node.group && node.group->round.stamp == group->round.stamp;
    // What comes after the question, the coordinator may not know.
    if (here && node.group->succeeded && node.group->succeeded_at < group->asked_at) {
      require(now() - node.group->succeeded_at + limit / 8 >= limit,
              "ranks are given up soon after those of " + node.options.host + " succeeded");
    }
    const bool works =
        here && node.group->running && !node.group->ending() && !node.group->succeeded;
    if (!works) continue;
    require(node.group->asked_at.has_value(), "ranks are given up, and a node was not asked");
    // The clocks differ in how fast they run.
    require(node.group->quiet_then + limit / 8 >= limit,
            "ranks are given up that make progress on " + node.options.host);
  }
}

}  // namespace ddprun::sim

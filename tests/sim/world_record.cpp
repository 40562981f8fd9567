// What `ddprun explain` would read of the agents of a simulated life, by the drifting clock of
// each.
#include "tests/sim/world.hpp"
#include "tests/support/explained.hpp"

namespace ddprun::sim {

using namespace protocol;

explain::NodeRecord& World::record_now(int id) {
  const Node& node = nodes_[index(id)];
  const TimePoint local = node.clock.local(now());
  const auto [at, is_new] = records_.try_emplace(node.process, Recorded{{}, local});
  explain::NodeRecord& record = at->second.record;
  if (is_new) {
    record.host = record.path = node.options.host;
    record.run = node.options.run_id;
  }
  record.last = std::chrono::duration<double, std::milli>(std::max(local, at->second.begun) -
                                                          at->second.begun)
                    .count();
  return record;
}

void World::record(int id, const Message& message) {
  explain::NodeRecord& record = record_now(id);
  if (const auto* start = std::get_if<StartRound>(&message)) {
    explain::RoundRecord& round = record.rounds[start->stamp.number.value()];
    if (round.decided && round.text == start->reason) return;  // it is told again
    round = {};
    round.text = start->reason;
    round.decided = record.last;
    round.node = start->group_rank;
    round.nodes = start->group_size;
    round.world_size = start->world_size.value();
  }
  if (const auto* done = std::get_if<Done>(&message)) {
    record.verdict_text = done->text;
    record.verdict_code = done->exit_code;
  }
  if (const auto* let_go = std::get_if<LetGo>(&message)) record.let_go = let_go->text;
}

explain::RoundRecord* World::round_now(int id) {
  explain::NodeRecord& record = record_now(id);
  const auto& group = nodes_[index(id)].group;
  const auto found =
      group ? record.rounds.find(group->round.stamp.number.value()) : record.rounds.end();
  return found == record.rounds.end() ? nullptr : &found->second;
}

void World::record(int id, Seen what, int rank) {
  explain::RoundRecord* round = round_now(id);
  const double at = record_now(id).last;
  if (round == nullptr) return;
  if (what == Seen::kRuns) round->all_running = at;
  if (what == Seen::kRuns && !round->first_started) round->first_started = at;
  if (what == Seen::kStops && !round->stop_began) round->stop_began = at;
  if (what == Seen::kExit) round->exits.push_back({at, rank});
  if (what == Seen::kOver) round->ended = at;
}

void World::check_records() const {
  std::map<std::string, std::vector<explain::NodeRecord>> runs;
  for (const auto& [process, recorded] : records_) {
    runs[recorded.record.run].push_back(recorded.record);
  }
  for (auto& [run, records] : runs) {
    const std::string wrong = test::contradiction_in(records);
    require(wrong.empty(), "explain contradicts itself: " + wrong);
    const auto text = explain::explain(std::move(records));
    require(!text || text->starts_with("run " + run + ": "), "explain has no headline");
  }
}

}  // namespace ddprun::sim

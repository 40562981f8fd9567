#include "trainer/recover/agent_worlds.hpp"

#include <atomic>
#include <chrono>

namespace ddprun::trainer {

namespace {

// ddprun decides on the next round as soon as it has learned of the loss, which is at once unless
// nodes are missing. If ddprun is gone the wait ends at once.
constexpr std::chrono::minutes kNextRound{10};

// The round that was pushed last; written by the library's thread, the number after the cause.
std::atomic<bool> all_live{false};
std::atomic<int> pushed{0};

void note(int round, World::Cause cause) {
  all_live = cause == World::Cause::kGrowth;
  pushed = round;
}

class AgentWorlds final : public WorldSource {
 public:
  AgentWorlds() { on_round(note); }
  ~AgentWorlds() override { on_round({}); }
  AgentWorlds(const AgentWorlds&) = delete;
  AgentWorlds& operator=(const AgentWorlds&) = delete;

  std::optional<WorkerEnvironment> next() override {
    World world;
    std::string problem;
    if (next_round(world, kNextRound, problem) != 0) return std::nullopt;
    return world;
  }
  NextWorld pending() override {
    const int number = round_pending();
    if (number == 0 || pushed < number) return NextWorld::kNone;  // its cause comes in a moment
    return all_live ? NextWorld::kGrown : NextWorld::kLost;
  }
};

}  // namespace

std::unique_ptr<WorldSource> agent_worlds() {
  auto worlds = std::make_unique<AgentWorlds>();  // before the first round may come
  if (survive() != 0) return nullptr;
  return worlds;
}

}  // namespace ddprun::trainer

#include "worker_api/rounds.hpp"

#include <errno.h>
#include <poll.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <utility>

#include "worker_api/link.hpp"

namespace ddprun::worker_link {
namespace {

constexpr int kPause_ms = 20;  // between attempts to send a packet for which there is no room
constexpr int kAttempts = 250;

std::atomic<int> pending{0};

// No thread of the parent waits there, none watches, and rounds are the parent's.
void begin_in_child() {
  Rounds& all = rounds();
  new (&all.changed) std::condition_variable;
  all.is_watched = false;
  all.pushed.reset();
  pending = 0;
  all.callback = nullptr;
  all.mutex.unlock();
}

Rounds* make_rounds() {
  ::pthread_atfork([] { rounds().mutex.lock(); }, [] { rounds().mutex.unlock(); }, begin_in_child);
  return new Rounds;
}

// Of a process that was started without a place, and which has none so far.
bool has_no_place(const Rounds& all) {
  return !all.taken && is_spare();
}

/// Takes what was pushed, or else at first the round of the environment. None: there is nothing to
/// take, or `problem` says why.
std::optional<World> take(Rounds& all, std::string& problem) {
  if (!all.taken && !is_spare() && !all.pushed) {
    all.taken = world_of_environment(problem);
    return all.taken;
  }
  std::optional<World> next = all.pushed;
  if (!next) return std::nullopt;
  if (all.taken) {
    next->previous_rank = all.taken->rank;
    next->previous_world_size = all.taken->world_size;
  }
  all.pushed.reset();
  all.taken = next;
  int its = next->round;
  pending.compare_exchange_strong(its, 0);
  return next;
}

int say_joined(int round) {
  if (LinkPage* shared = known_page()) shared->first_step_at.store(0, std::memory_order_relaxed);
  const auto content = little_endian(static_cast<std::uint32_t>(round));
  int failed = EAGAIN;
  for (int i = 0; i < kAttempts && failed == EAGAIN; ++i) {
    if (i > 0) ::poll(nullptr, 0, kPause_ms);
    failed = send_packet(PacketKind::kJoined, content.data(), content.size());
  }
  return failed;
}

}  // namespace

// Never destroyed: threads may still wait while the process exits.
Rounds& rounds() {
  static Rounds* const all = make_rounds();
  return *all;
}

bool is_spare() {
  const char* number = std::getenv("DDPRUN_SPARE");
  return number != nullptr && *number != '\0' && std::getenv("RANK") == nullptr;
}

int pending_round() {
  return pending.load(std::memory_order_relaxed);
}

void set_pending_round(int round) {
  pending = round;
}

std::optional<World> world_of_environment(std::string& problem) {
  auto worker = read_worker_environment(problem);
  if (!worker) return std::nullopt;
  World world;
  static_cast<WorkerEnvironment&>(world) = std::move(*worker);
  return world;
}

std::optional<World> present_world() {
  {
    Rounds& all = rounds();
    const std::lock_guard lock(all.mutex);
    if (all.taken) return all.taken;
  }
  if (is_spare()) return std::nullopt;
  std::string problem;
  return world_of_environment(problem);
}

std::optional<World> parse_round(const std::uint8_t* content, std::size_t size) {
  if (size < kRoundHeaderBytes || (size > kRoundHeaderBytes && content[size - 1] != 0)) {
    return std::nullopt;
  }
  World world;
  world.cause = World::Cause::kFailure;
  std::size_t at = kRoundHeaderBytes;
  while (at < size) {
    const std::string variable(reinterpret_cast<const char*>(content) + at);
    at += variable.size() + 1;
    const std::size_t equals = variable.find('=');
    if (equals == 0 || equals == std::string::npos) return std::nullopt;
    world.variables[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  const VariableLookup lookup = [&](const char* name) -> const char* {
    const auto found = world.variables.find(name);
    return found == world.variables.end() ? nullptr : found->second.c_str();
  };
  std::string problem;
  auto worker = read_worker_environment(lookup, problem);
  if (!worker || !worker->launched) return std::nullopt;
  static_cast<WorkerEnvironment&>(world) = std::move(*worker);
  world.round = static_cast<int>(from_little_endian<std::uint32_t>(content));
  return world;
}

}  // namespace ddprun::worker_link

namespace ddprun {

using namespace worker_link;

int next_round(World& world, std::chrono::milliseconds timeout, std::string& problem) {
  problem.clear();
  Rounds& all = rounds();
  std::unique_lock lock(all.mutex);
  const bool forever = timeout.count() < 0 || has_no_place(all);
  const auto deadline = std::chrono::steady_clock::now() + (forever ? timeout * 0 : timeout);
  std::optional<World> next = take(all, problem);
  // Unless it is watched no round is ever pushed to this process.
  while (!next && problem.empty() && all.is_watched && !all.has_ended) {
    if (forever) {
      all.changed.wait(lock);
    } else if (all.changed.wait_until(lock, deadline) == std::cv_status::timeout && !all.pushed) {
      return ETIMEDOUT;
    }
    next = take(all, problem);
  }
  lock.unlock();
  if (!problem.empty()) return EINVAL;
  if (!next) return ENOTCONN;
  world = *next;
  const bool was_pushed = !next->variables.empty();
  if (!was_pushed) return 0;
  abandon_sockets();  // ranks that are still in a collective of the round before learn of it
  return say_joined(next->round);
}

int wait_for_place(std::chrono::milliseconds timeout) {
  Rounds& all = rounds();
  std::unique_lock lock(all.mutex);
  const auto is_over = [&] {
    return !has_no_place(all) || all.pushed || all.has_ended || !all.is_watched;
  };
  return all.changed.wait_for(lock, timeout, is_over) ? 0 : ETIMEDOUT;
}

void on_round(std::function<void(int round, World::Cause cause)> callback) {
  Rounds& all = rounds();
  const std::lock_guard lock(all.mutex);
  all.callback = callback ? std::make_shared<const Rounds::Callback>(std::move(callback)) : nullptr;
}

int round_pending() {
  return pending_round();
}

}  // namespace ddprun

// The rounds of this process: the one it is in, and one that was pushed to it. Thread rule: any
// thread. Ownership: the process's, for good. A forked process knows what its parent knew then.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "worker_api/worker.hpp"

namespace ddprun::worker_link {

struct Rounds {
  std::mutex mutex{};
  std::condition_variable changed{};
  std::optional<World> taken{};   // by next_round()
  std::optional<World> pushed{};  // not taken yet
  bool is_watched = false;        // the watcher runs in this process
  bool has_ended = false;         // the link: no agent is there, or it refuses each one
  using Callback = std::function<void(int round, World::Cause cause)>;
  std::shared_ptr<const Callback> callback{};  // may be called while another one takes its place
};
[[nodiscard]] Rounds& rounds();

/// Whether the process was started to wait for the place of a lost rank.
[[nodiscard]] bool is_spare();
/// A round that was pushed and that next_round() has not taken; 0: none. Async-signal-safe.
[[nodiscard]] int pending_round();
void set_pending_round(int round);

/// The round of the environment. Empty: `problem` says what is wrong with it.
[[nodiscard]] std::optional<World> world_of_environment(std::string& problem);
/// The round that the process is in: taken, or that of its environment.
[[nodiscard]] std::optional<World> present_world();
/// What the agent sends after the header of a packet; none: malformed.
[[nodiscard]] std::optional<World> parse_round(const std::uint8_t* content, std::size_t size);

}  // namespace ddprun::worker_link

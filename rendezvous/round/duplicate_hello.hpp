// DuplicateHellos: hellos with the id of an agent whose link is open. Either its link broke and
// only the agent knows, or another process uses its id. An agent closes its link before it makes
// another one, so it is asked over the old one: an answer shows that the hello is not its own, and
// without one the new link is taken after a short time. The question is the proof: it needs no
// field that could be sent again, and agents of every version answer it. Pure, owned by Run.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/round/roster.hpp"

namespace ddprun::round {

/// For the answer, or a quarter of the silence limit. Only an agent that is back waits for it.
inline constexpr Duration kDuplicateMax = std::chrono::seconds(1);
/// Messages behind the hello that wait with it; an agent sends its last report, a `stopped` and
/// heartbeats, which count once.
inline constexpr std::size_t kHeldMessagesMax = 8;

class DuplicateHellos {
 public:
  struct Duplicate {
    Received hello;
    std::vector<Received> behind{};  // what else came on that link
    int question = 0;
    TimePoint until;
  };

  /// The agent is asked, and has until then to answer. Of several hellos with its id the last one
  /// waits, with what is left of the time of the first.
  void add(const Agent& agent, const Received& hello, TimePoint until, Outbox& out);
  /// Whether this answer of the agent proves a hello to be another process's, which is refused.
  [[nodiscard]] bool disprove(const Agent& agent, int answer, Outbox& out);
  /// The link that the agent has is gone, or silent: what is to take its place.
  [[nodiscard]] std::optional<Duplicate> take(const AgentId& agent);
  /// Whether the message came behind such a hello, and waits with it.
  [[nodiscard]] bool hold(const Received& received, Outbox& out);
  /// Without its agent a hello is that of a new one; it may say it again.
  void forget(const AgentId& agent, Outbox& out);
  /// That link is gone, or refused.
  void forget(LinkId link);

  [[nodiscard]] bool waits(const AgentId& agent) const { return all_.contains(agent.value()); }
  /// Whose id the hello on this link had; empty: none waits there.
  [[nodiscard]] std::string agent_on(LinkId link) const;
  [[nodiscard]] std::vector<AgentId> due(TimePoint now) const;
  [[nodiscard]] std::vector<TimePoint> deadlines() const;

 private:
  std::map<std::string, Duplicate> all_;  // by agent id
};

}  // namespace ddprun::round

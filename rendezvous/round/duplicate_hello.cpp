#include "rendezvous/round/duplicate_hello.hpp"

#include <algorithm>
#include <utility>

#include "rendezvous/round/reasons.hpp"

namespace ddprun::round {

using namespace protocol;

namespace {

/// A heartbeat says no more than that its agent lives, which the last of several says, too.
bool is_heartbeat(const Received& received) {
  const auto* beat = std::get_if<Beat>(&received.message);
  return beat != nullptr && !beat->echo;
}

}  // namespace

void DuplicateHellos::add(const Agent& agent, const Received& received, TimePoint until,
                          Outbox& out) {
  const auto& hello = std::get<Hello>(received.message);
  const auto [found, is_first] = all_.try_emplace(hello.agent.value());
  Duplicate& waiting = found->second;
  if (!is_first) {
    if (hello.age < std::get<Hello>(waiting.hello.message).age) return out.close(received.link);
    if (waiting.hello.link != received.link) out.close(waiting.hello.link);
  }
  waiting.hello = received;
  waiting.behind.clear();
  if (!is_first) return;
  waiting.question = out.next_question();
  waiting.until = until;
  out.send(agent.link, Beat{waiting.question});
}

bool DuplicateHellos::disprove(const Agent& agent, int answer, Outbox& out) {
  const auto found = all_.find(agent.hello.agent.value());
  if (found == all_.end() || found->second.question != answer) return false;
  const Received hello = std::move(all_.extract(found).mapped().hello);
  out.note(Level::kWarning, reasons::not_this_agent(agent.host(), hello.peer.address));
  out.send(hello.link, Refused{RefusalCode::kMalformed,
                               "an agent with this id is connected and answers", Milliseconds(0)});
  out.close(hello.link);
  return true;
}

std::optional<DuplicateHellos::Duplicate> DuplicateHellos::take(const AgentId& agent) {
  auto taken = all_.extract(agent.value());
  if (taken.empty()) return std::nullopt;
  return std::move(taken.mapped());
}

bool DuplicateHellos::hold(const Received& received, Outbox& out) {
  const auto found = all_.find(agent_on(received.link));
  if (found == all_.end()) return false;
  std::vector<Received>& behind = found->second.behind;
  const bool had_one = std::any_of(behind.begin(), behind.end(), is_heartbeat);
  if (is_heartbeat(received) && had_one) return true;
  if (behind.size() >= kHeldMessagesMax) {
    out.close(received.link);
    all_.erase(found);
    return true;
  }
  behind.push_back(received);
  return true;
}

void DuplicateHellos::forget(const AgentId& agent, Outbox& out) {
  const auto waiting = take(agent);
  if (waiting) out.close(waiting->hello.link);
}

void DuplicateHellos::forget(LinkId link) {
  all_.erase(agent_on(link));
}

std::string DuplicateHellos::agent_on(LinkId link) const {
  const auto found = std::find_if(
      all_.begin(), all_.end(), [link](const auto& one) { return one.second.hello.link == link; });
  return found == all_.end() ? "" : found->first;
}

std::vector<AgentId> DuplicateHellos::due(TimePoint now) const {
  std::vector<AgentId> agents;
  for (const auto& [id, waiting] : all_) {
    if (now >= waiting.until) agents.emplace_back(id);
  }
  return agents;
}

std::vector<TimePoint> DuplicateHellos::deadlines() const {
  std::vector<TimePoint> all;
  for (const auto& [id, waiting] : all_) all.push_back(waiting.until);
  return all;
}

}  // namespace ddprun::round

// A hello with the id of an agent whose link is open: takeover.hpp.
#include <algorithm>
#include <utility>

#include "rendezvous/protocol/limits.hpp"
#include "rendezvous/round/run.hpp"

namespace ddprun::round {

using namespace protocol;

namespace {

/// A heartbeat says no more than that its agent lives, which the last of several says, too.
bool is_heartbeat(const Received& received) {
  const auto* beat = std::get_if<Beat>(&received.message);
  return beat != nullptr && !beat->echo;
}

}  // namespace

// Of several that claim the id the last one waits, with what is left of the time of the first.
void Run::doubt(Agent& agent, const Received& received) {
  const auto found = takeovers_.find(agent.hello.agent.value());
  if (found != takeovers_.end()) {
    Takeover& waiting = found->second;
    const auto age = [](const Received& hello) { return std::get<Hello>(hello.message).age; };
    if (age(received) < age(waiting.hello)) return close(received.link);
    if (waiting.hello.link != received.link) close(waiting.hello.link);
    waiting.hello = received;
    waiting.behind.clear();
    return;
  }
  const Duration limit = std::min<Duration>(kTakeoverMax, terms().silence_max() / 4);
  const int question = next_question();
  takeovers_.emplace(agent.hello.agent.value(), Takeover{received, {}, question, now_ + limit});
  send(agent.link, Beat{question});
}

/// That link is gone, or refused.
void Run::forget_takeover(LinkId link) {
  const auto found = takeover_on(link);
  if (found != takeovers_.end()) takeovers_.erase(found);
}

/// Whether the message came on a link that waits to take over an agent's.
bool Run::hold(const Received& received) {
  const auto found = takeover_on(received.link);
  if (found == takeovers_.end()) return false;
  std::vector<Received>& behind = found->second.behind;
  if (is_heartbeat(received) && std::any_of(behind.begin(), behind.end(), is_heartbeat))
    return true;
  if (behind.size() >= kHeldMessagesMax) {
    close(received.link);
    takeovers_.erase(found);
    return true;
  }
  behind.push_back(received);
  return true;
}

/// Its agent has answered over the link that it has.
void Run::end_takeover(const Agent& agent, int answer) {
  const auto found = takeovers_.find(agent.hello.agent.value());
  if (found == takeovers_.end() || found->second.question != answer) return;
  ++counters_.refusals;
  const Received& hello = found->second.hello;
  note(Level::kWarning, reasons::not_this_agent(agent.host(), hello.peer.address));
  send(hello.link, Refused{RefusalCode::kMalformed,
                           "an agent with this id is connected and answers", Milliseconds(0)});
  close(hello.link);
  takeovers_.erase(found);
}

/// The link that the agent has is gone, or silent: whether another one takes its place.
bool Run::take_over(Agent& agent) {
  auto taken = takeovers_.extract(agent.hello.agent.value());
  if (taken.empty()) return false;
  const Takeover& takeover = taken.mapped();
  const auto& hello = std::get<Hello>(takeover.hello.message);
  if (const auto* over = in<Over>()) {
    late_hello(*over, takeover.hello, hello);
    return true;
  }
  take_back(agent, takeover.hello, hello);
  for (const Received& received : takeover.behind) on(received);
  return true;
}

void Run::settle_takeovers() {
  if (!ticked_) return;
  std::vector<std::string> due;
  for (const auto& [id, takeover] : takeovers_) {
    if (now_ >= takeover.until) due.push_back(id);
  }
  for (const std::string& id : due) {
    Agent* agent = roster_.by_id(AgentId(id));  // what was said behind a hello may end others
    if (agent != nullptr) take_over(*agent);
  }
}

/// Without its agent a hello that waits is that of a new one; it may say it again.
void Run::forget_takeover(const Agent& agent) {
  const auto found = takeovers_.find(agent.hello.agent.value());
  if (found == takeovers_.end()) return;
  close(found->second.hello.link);
  takeovers_.erase(found);
}

Takeovers::iterator Run::takeover_on(LinkId link) {
  return std::find_if(takeovers_.begin(), takeovers_.end(),
                      [link](const auto& one) { return one.second.hello.link == link; });
}

int Run::next_question() {
  questions_ = questions_ % kEchoMax + 1;
  return questions_;
}

}  // namespace ddprun::round

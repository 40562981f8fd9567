// A hello with the id of an agent whose link is open: duplicate_hello.hpp.
#include <algorithm>

#include "rendezvous/protocol/limits.hpp"
#include "rendezvous/round/run.hpp"

namespace ddprun::round {

using namespace protocol;

void Run::doubt(const Agent& agent, const Received& received) {
  if (!duplicates_.add(received, out_)) return;
  const int question = next_question();
  const Duration limit = std::min<Duration>(kDuplicateMax, terms().silence_max() / 4);
  duplicates_.asked(agent.hello.agent, question, now_ + limit);
  out_.send(agent.link, Beat{question});
}

/// Its agent may have answered over the link that it has.
void Run::disprove_duplicate(const Agent& agent, int answer) {
  const auto hello = duplicates_.disprove(agent.hello.agent, answer);
  if (!hello) return;
  ++counters_.refusals;
  out_.note(Level::kWarning, reasons::not_this_agent(agent.host(), hello->peer.address));
  out_.send(hello->link,
            Refused{RefusalCode::kMalformed, "an agent with this id is connected and answers",
                    Milliseconds(0)});
  out_.close(hello->link);
}

/// The link that the agent has is gone, or silent: whether another one takes its place.
bool Run::take_duplicate(Agent& agent) {
  const auto taken = duplicates_.take(agent.hello.agent);
  if (!taken) return false;
  const auto& hello = std::get<Hello>(taken->hello.message);
  if (const auto* over = in<Over>()) {
    late_hello(*over, taken->hello, hello);
    return true;
  }
  take_back(agent, taken->hello, hello);
  for (const Received& received : taken->behind) on(received);
  return true;
}

void Run::settle_duplicates() {
  if (!ticked_) return;
  for (const AgentId& id : duplicates_.due(now_)) {
    Agent* agent = roster_.by_id(id);  // what was said behind a hello may end others
    if (agent != nullptr) take_duplicate(*agent);
  }
}

int Run::next_question() {
  questions_ = questions_ % kEchoMax + 1;
  return questions_;
}

}  // namespace ddprun::round

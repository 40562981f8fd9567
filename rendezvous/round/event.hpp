// The events and actions of Run::step. Plain data, no thread rule.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/types.hpp"
#include "rendezvous/protocol/limits.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace ddprun::round {

/// One accepted connection; the shell never uses a number twice, and never 0.
using LinkId = Strong<struct LinkTag, std::uint64_t>;
inline constexpr LinkId kNoLink{0};

/// The two ends of a link as the coordinator's kernel sees them: address literals, no ports.
struct Peer {
  std::string address;        // the agent's
  std::string local_address;  // the coordinator's, as this agent reaches it
  bool is_proven = false;     // it has the run's secret, or a certificate
};

/// Where the workers of this agent may come from: its interfaces, the source of its link, and
/// --local-addr ("" without). Empty: it does not tell its interfaces.
[[nodiscard]] inline std::vector<std::string> worker_addresses(const protocol::Hello& hello,
                                                               const Peer& peer) {
  std::vector<std::string> all = hello.addresses;
  if (!all.empty()) all.insert(all.end(), {peer.address, hello.address});
  return all;
}

/// A decoded frame.
struct Received {
  LinkId link;
  Peer peer;
  protocol::Message message;
};
/// A connection ended that Run did not close; `evidence` says how ("connection closed", "reset").
struct LinkLost {
  LinkId link;
  std::string evidence;
  bool by_network = false;  // not by the peer's kernel: the agent may live
};
/// Those that ended at the same time: a rack that goes down costs one round, not one per node.
struct LinksLost {
  std::vector<LinkLost> links;
};
/// The time of the last ArmTimer has passed, and everything that was received before it has been
/// read: only then may an agent be blamed. An early, late or extra Tick does no harm.
struct Tick {};
/// The coordinator's own process ends, and the run with it.
struct Shutdown {
  int exit_code = 143;
  std::string reason;
};
using Event = std::variant<Received, LinksLost, Tick, Shutdown>;

struct Send {
  LinkId link;
  protocol::Message message;
};
/// Close after everything sent before was written; it is not reported as lost.
struct Close {
  LinkId link;
};
/// Replaces the timer that was armed before.
struct ArmTimer {
  TimePoint deadline;
};
enum class Level : std::uint8_t { kInfo, kWarning };
/// A line for the log and the status page, one per fact, on change only.
struct Note {
  Level level;
  std::string text;
  std::string in_log{};  // if not empty: in place of the text, which the status page shows too
};
/// Nothing more will happen: the run can be forgotten.
struct Finish {
  int exit_code = 0;
  std::string reason;
};
/// Too few agents came to this candidate: they have to look elsewhere, and it decides nothing.
struct Abdicate {
  std::string reason;
};
/// The node of this coordinator leaves, and another one follows: close the listener, then all
/// links. It decides nothing more.
struct Resign {};
using Action = std::variant<Send, Close, ArmTimer, Note, Finish, Abdicate, Resign>;
using Actions = std::vector<Action>;

/// The actions of one step, in order. No link (kNoLink) gets nothing.
class Outbox {
 public:
  /// The number of another question; agents are asked by Beat and Hang.
  [[nodiscard]] int next_question() { return question_ = question_ % protocol::kEchoMax + 1; }
  void add(Action action) { actions_.push_back(std::move(action)); }
  void send(LinkId link, protocol::Message message) {
    if (link != kNoLink) add(Send{link, std::move(message)});
  }
  void close(LinkId link) {
    if (link != kNoLink) add(Close{link});
  }
  void note(Level level, std::string text) { add(Note{level, std::move(text)}); }
  [[nodiscard]] Actions take() { return std::exchange(actions_, {}); }

 private:
  Actions actions_;
  int question_ = 0;
};

}  // namespace ddprun::round

// Desk: a run, a clock that a test moves, and what was sent to whom.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/round/run.hpp"

namespace ddprun::round {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A run, a clock that a test moves, and what was sent to whom.
class Desk {
 public:
  explicit Desk(int max_restarts = 0)
      : run_(RunOptions{RunId("7f3a"), "c1"}), max_restarts_(max_restarts) {}

  protocol::Hello hello(const std::string& host, int least, int most) {
    protocol::Hello hello;
    hello.run_id = RunId("7f3a");
    hello.agent = AgentId("id-" + host);
    hello.host = host;
    hello.store_port = 4000;
    hello.terms.nodes_min = least;
    hello.terms.nodes_max = most;
    hello.terms.max_restarts = max_restarts_;
    return hello;
  }
  void say(std::uint64_t link, const protocol::Message& message,
           const Peer& peer = {"10.0.0.2", "10.0.0.1"}) {
    take(run_.step(Received{LinkId(link), peer, message}, now_));
  }
  void lose(std::uint64_t link) {
    take(run_.step(LinkLost{LinkId(link), "connection closed"}, now_));
  }
  void after(Duration time) {
    now_ += time;
    take(run_.step(Tick{}, now_));
  }
  /// The last message of this type to the link, if any, since the last call.
  template <class T>
  std::optional<T> last(std::uint64_t link) {
    for (auto it = sent_.rbegin(); it != sent_.rend(); ++it) {
      const auto* message = std::get_if<T>(&it->message);
      if (it->link.value() == link && message != nullptr) return *message;
    }
    return std::nullopt;
  }
  void forget() { sent_.clear(); }
  void join_two() {
    say(1, hello("a", 2, 2));
    say(2, hello("b", 2, 2));
  }
  protocol::Report report(int round, protocol::NodeState state, std::uint16_t port = 5000) {
    return {Round(round), state, port, {}, 0};
  }
  protocol::Report failed(int round, int code) {
    protocol::Report failed = report(round, protocol::NodeState::kFailed);
    failed.exits.emplace_back();
    failed.exits.back().exit_code = code;
    failed.exits.back().cause = "exit code " + std::to_string(code);
    return failed;
  }

  Run run_;
  TimePoint now_{seconds(100)};
  std::optional<TimePoint> armed_;
  std::optional<Finish> finish_;
  std::vector<LinkId> closed_;

 private:
  void take(const Actions& actions) {
    for (const Action& action : actions) {
      if (const auto* send = std::get_if<Send>(&action)) sent_.push_back(*send);
      if (const auto* timer = std::get_if<ArmTimer>(&action)) armed_ = timer->deadline;
      if (const auto* close = std::get_if<Close>(&action)) closed_.push_back(close->link);
      if (const auto* finish = std::get_if<Finish>(&action)) finish_ = *finish;
    }
  }
  std::vector<Send> sent_;
  int max_restarts_;
};

}  // namespace ddprun::round

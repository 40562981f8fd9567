// Desk: the scene of the tests of Run.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "base/exit_status.hpp"
#include "base/limits.hpp"
#include "rendezvous/round/run.hpp"

namespace ddprun::round {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

/// A run, a clock that a test moves, and what was sent to whom.
class Desk {
 public:
  explicit Desk(int max_restarts = 0)
      : run_(RunOptions{RunId("7f3a"), "c1"}), max_restarts_(max_restarts) {}
  /// After a coordinator that left this record.
  Desk(int max_restarts, RunRecord record)
      : run_(RunOptions{RunId("7f3a"), "c1", std::nullopt, false, std::move(record)}),
        max_restarts_(max_restarts) {}

  /// Other nodes may coordinate the run.
  explicit Desk(SuccessionOptions succession, int max_restarts = 0)
      : run_(options_of(std::move(succession))), max_restarts_(max_restarts) {}

  explicit Desk(RunOptions options) : run_(std::move(options)), max_restarts_(3) {}

  protocol::Hello hello(const std::string& host, int least, int most,
                        protocol::Milliseconds last_call = protocol::Terms().last_call_timeout) {
    protocol::Hello hello;
    hello.run_id = RunId("7f3a");
    hello.agent = AgentId("id-" + host);
    hello.host = host;
    hello.store_port = 4000;
    hello.terms.nodes_min = least;
    hello.terms.nodes_max = most;
    hello.terms.max_restarts = max_restarts_;
    hello.terms.last_call_timeout = last_call;
    return hello;
  }
  void say(std::uint64_t link, const protocol::Message& message,
           const Peer& peer = {"10.0.0.2", "10.0.0.1"}) {
    take(run_.step(Received{LinkId(link), peer, message}, now_));
  }
  void lose(std::initializer_list<std::uint64_t> links) {
    LinksLost lost;
    for (const std::uint64_t link : links) {
      lost.links.push_back({LinkId(link), "connection closed"});
    }
    take(run_.step(lost, now_));
  }
  void lose(std::uint64_t link) { lose({link}); }
  /// Not by the peer's kernel.
  void break_link(std::uint64_t link) {
    take(run_.step(LinksLost{{{LinkId(link), "the connection broke", true}}}, now_));
  }
  /// Time passes, with a Tick at each deadline as of a shell, and at the end.
  void after(Duration time) {
    const TimePoint end = now_ + time;
    while (armed_ && *armed_ < end) tick_at(std::max(now_, *armed_));
    tick_at(end);
  }
  /// The coordinator does not run for so long; then its timer is late.
  void stall(Duration time) { tick_at(now_ + time); }
  /// The last message of this type to the link, if any, since the last call.
  template <class T>
  std::optional<T> last(std::uint64_t link) {
    for (auto it = sent_.rbegin(); it != sent_.rend(); ++it) {
      const auto* message = std::get_if<T>(&it->message);
      if (it->link.value() == link && message != nullptr) return *message;
    }
    return std::nullopt;
  }
  /// All messages to the link since the last forget(), in order.
  [[nodiscard]] std::vector<protocol::Message> sent_to(std::uint64_t link) const {
    std::vector<protocol::Message> messages;
    for (const Send& send : sent_) {
      if (send.link.value() == link) messages.push_back(send.message);
    }
    return messages;
  }
  void forget() {
    sent_.clear();
    notes_.clear();
  }
  /// Nodes "a" and "b" on links 1 and 2: round 1 starts.
  void join_two(int least = 2) {
    say(1, hello("a", least, 2));
    say(2, hello("b", least, 2));
  }
  /// The workers of both run; node "a" has opened its next store.
  void both_run(int round = 1) {
    say(1, report(round, protocol::NodeState::kRunning, 5001));
    say(2, report(round, protocol::NodeState::kRunning));
  }
  /// Node "b" comes back from round 1.
  protocol::Hello hello_again(int least = 2) {
    protocol::Hello again = hello("b", least, 2);
    again.claim =
        protocol::Claim{{Round(1), "c1"}, 1, 2, RestartCount(0), protocol::NodeState::kRunning};
    return again;
  }
  /// Time passes, and these links bring a heartbeat every second.
  void beat_for(Duration time, std::initializer_list<std::uint64_t> links) {
    for (Duration step; time.count() > 0; time -= step) {
      step = std::min<Duration>(time, seconds(1));
      after(step);
      for (const std::uint64_t link : links) say(link, protocol::Beat{});
    }
  }
  void shut_down() { take(run_.step(Shutdown{143, "SIGTERM received"}, now_)); }
  protocol::Report report(int round, protocol::NodeState state, std::uint16_t port = 5000) {
    return {Round(round), state, port, std::nullopt};
  }
  protocol::Report failed(int round, int code) {
    protocol::Report failed = report(round, protocol::NodeState::kFailed);
    failed.failure.emplace().status = ExitStatus::exited(code);
    return failed;
  }

  Run run_;
  TimePoint now_{seconds(100)};
  std::optional<TimePoint> armed_;
  std::optional<Finish> finish_;
  std::vector<LinkId> closed_;
  std::optional<std::string> abdicated_;
  bool resigned_ = false;
  std::vector<std::string> notes_;  ///< since the last forget()

 private:
  static RunOptions options_of(SuccessionOptions succession) {
    RunOptions options{RunId("7f3a"), "c1"};
    options.succession = std::move(succession);
    return options;
  }
  void tick_at(TimePoint now) {
    now_ = now;
    if (armed_ && *armed_ <= now) armed_.reset();
    take(run_.step(Tick{}, now_));
  }
  void take(const Actions& actions) {
    for (const Action& action : actions) {
      if (const auto* send = std::get_if<Send>(&action)) sent_.push_back(*send);
      if (const auto* timer = std::get_if<ArmTimer>(&action)) armed_ = timer->deadline;
      if (const auto* close = std::get_if<Close>(&action)) closed_.push_back(close->link);
      if (const auto* note = std::get_if<Note>(&action)) notes_.push_back(note->text);
      if (const auto* finish = std::get_if<Finish>(&action)) finish_ = *finish;
      if (const auto* gone = std::get_if<Abdicate>(&action)) abdicated_ = gone->reason;
      resigned_ = resigned_ || std::holds_alternative<Resign>(action);
    }
  }
  std::vector<Send> sent_;
  int max_restarts_;
};

}  // namespace ddprun::round

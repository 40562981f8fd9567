// Seat: one Membership, a clock that the test advances, and the actions so far.
#pragma once

#include <algorithm>

#include "base/exit_status.hpp"
#include "rendezvous/client/membership.hpp"
#include "tests/support/catch.hpp"

namespace ddprun::client {

using namespace protocol;
using std::chrono::milliseconds;
using std::chrono::seconds;

class Seat {
 public:
  explicit Seat(Duration coordinator_timeout = seconds(60), int nodes_max = 2)
      : Seat(options(coordinator_timeout, nodes_max)) {}
  explicit Seat(MembershipOptions options) : membership_(std::move(options), now_) {
    take(membership_.begin(now_));
  }
  static Seat that_keeps_survivors() {
    MembershipOptions own = options(seconds(60), 2);
    own.keeps_survivors = true;
    return Seat(std::move(own));
  }

  static MembershipOptions options(Duration coordinator_timeout, int nodes_max) {
    MembershipOptions options;
    options.coordinator_timeout = coordinator_timeout;
    options.hello.run_id = RunId("7f3a");
    options.hello.agent = AgentId("id");
    options.hello.host = "gpu-01";
    options.hello.terms.nodes_max = nodes_max;
    options.coordinator = "10.0.4.11:29400";
    return options;
  }
  void feed(const client::Event& event) { take(membership_.step(event, now_)); }
  void hear(const Message& message) { feed(Incoming{link_, message}); }
  void after(Duration time) {
    now_ += time;
    feed(client::Tick{});
  }
  void connect() {
    feed(StoreOpened{4000});
    feed(LinkUp{link_});
  }
  /// All ranks of this node run in round 1, and nothing else is done.
  static Seat in_round_one() {
    Seat seat;
    seat.connect();
    seat.hear(seat.round(1));
    seat.feed(GroupRunning{Round(1)});
    seat.forget();
    return seat;
  }
  /// The ranks of this node exit with 0 in round 1.
  void succeed() {
    feed(GroupSucceeded{Round(1)});
    feed(GroupGone{Round(1)});
  }
  StartRound round(int number, int group_rank = 1) {
    StartRound start;
    start.stamp.number = Round(number);
    start.stamp.author = "c1";
    start.group_rank = group_rank;
    start.group_size = 2;
    start.rank_base = Rank(group_rank);
    start.world_size = WorldSize(2);
    start.role_rank_base = group_rank;
    start.role_world_size = 2;
    start.master_address = "10.0.4.11";
    start.master_port = 5000;
    start.reason = "all 2 nodes joined";
    return start;
  }
  /// Of one node, with one rank.
  StartRound round_alone(int number) {
    StartRound start = round(number, 0);
    start.group_size = start.role_world_size = 1;
    start.world_size = WorldSize(1);
    return start;
  }
  template <class T>
  std::optional<T> done() const {
    for (auto it = actions_.rbegin(); it != actions_.rend(); ++it) {
      if (const auto* action = std::get_if<T>(&*it)) return *action;
    }
    return std::nullopt;
  }
  template <class T>
  std::optional<T> said() const {
    for (auto it = actions_.rbegin(); it != actions_.rend(); ++it) {
      const auto* sent = std::get_if<SendMessage>(&*it);
      if (sent == nullptr) continue;
      if (const auto* message = std::get_if<T>(&sent->message)) return *message;
    }
    return std::nullopt;
  }
  [[nodiscard]] bool says_success_of(Round round) const {
    return std::any_of(actions_.begin(), actions_.end(), [round](const client::Action& action) {
      const auto* sent = std::get_if<SendMessage>(&action);
      const auto* report = sent != nullptr ? std::get_if<Report>(&sent->message) : nullptr;
      return report != nullptr && report->round == round && report->state == NodeState::kSucceeded;
    });
  }
  void forget() { actions_.clear(); }

  TimePoint now_{seconds(100)};
  client::LinkId link_ = 0;
  Membership membership_;

 private:
  void take(const client::Actions& actions) {
    for (const auto& action : actions) {
      if (const auto* connect = std::get_if<Connect>(&action)) link_ = connect->link;
      actions_.push_back(action);
    }
  }
  client::Actions actions_;
};

}  // namespace ddprun::client

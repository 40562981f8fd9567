// Seeded lives of a run that is full, each once alone and once with a stranger that says whatever
// it likes: its members must be told the same.
#include <random>

#include "tests/round/desk.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::round;
using namespace ddprun::protocol;

namespace {

constexpr int kLives = 3000;
constexpr int kEvents = 25;
constexpr std::uint64_t kLiar = 9;

class Draw {
 public:
  explicit Draw(std::uint32_t seed) : engine_(seed) {}
  [[nodiscard]] int below(int end) {
    return static_cast<int>(engine_() % static_cast<std::uint32_t>(end));
  }
  [[nodiscard]] bool maybe() { return below(2) == 0; }

 private:
  std::mt19937 engine_;
};

NodeState any_state(Draw& draw) {
  constexpr NodeState kStates[] = {
      NodeState::kIdle,   NodeState::kStarting, NodeState::kRunning, NodeState::kSucceeded,
      NodeState::kFailed, NodeState::kStopping, NodeState::kStopped};
  return kStates[draw.below(7)];
}

/// What counts for a member, without the numbers of rounds, which a stranger may lift.
std::string words(const Message& message) {
  if (const auto* start = std::get_if<StartRound>(&message)) {
    return "round, rank " + std::to_string(start->group_rank) + " of " +
           std::to_string(start->group_size) + ", restart " +
           std::to_string(start->restarts.value()) + ", store " +
           std::to_string(start->master_port);
  }
  if (const auto* stop = std::get_if<Stop>(&message)) {
    return std::string("stop") + (stop->verdict ? " with a verdict" : "");
  }
  if (const auto* done = std::get_if<Done>(&message)) {
    std::string text = "done " + std::to_string(done->exit_code);
    if (!done->failure) return text;
    const RunFailure& failure = *done->failure;
    return text + ", first on " + failure.first.worker.host + ", stopped " +
           std::to_string(failure.stopped) + ", also " + failure.also;
  }
  return "";
}

/// Two nodes in a run of two, and perhaps a third one that came too late.
class Life {
 public:
  Life(std::uint32_t seed, bool has_stranger)
      : draw_(seed), lies_(seed + 1), has_stranger_(has_stranger), desk_(2) {
    desk_.join_two();
    lie();
    for (int event = 0; event < kEvents && !desk_.run_.over(); ++event) {
      happen();
      lie();
    }
    conclude();
  }

  [[nodiscard]] std::vector<std::string> told(std::uint64_t link) const {
    std::vector<std::string> told;
    for (const Message& message : desk_.sent_to(link)) {
      if (std::string text = words(message); !text.empty()) told.push_back(std::move(text));
    }
    return told;
  }

 private:
  [[nodiscard]] int round() const { return desk_.run_.status(desk_.now_).round.number.value(); }

  /// Something that a member does.
  void happen() {
    const auto link = static_cast<std::uint64_t>(1 + draw_.below(2));
    switch (draw_.below(8)) {
      case 0:
        return desk_.say(link, desk_.failed(round(), 3));
      case 1:
        return desk_.say(link, Stopped{Round(round()), milliseconds(5), 0, 1});
      case 2:
        desk_.say(link, Reconnecting{});
        return come_back(link);
      case 3:
        return desk_.say(link, desk_.report(round(), NodeState::kSucceeded));
      case 4:
        return leave_all(link, draw_.below(4) == 0);
      case 5:
        return pass_time();
      default:
        return desk_.say(link, desk_.report(round(), NodeState::kRunning));
    }
  }

  /// Both have taken on their round: who does not answer is lost, and any node may follow it.
  void pass_time() {
    for (const std::uint64_t link : {1U, 2U}) {
      desk_.say(link, desk_.report(round(), NodeState::kRunning));
    }
    desk_.beat_for(seconds(3), {1, 2, kLiar});
  }

  void come_back(std::uint64_t link) {
    Hello again = desk_.hello(link == 1 ? "a" : "b", 2, 2);
    const auto start = desk_.last<StartRound>(link);
    again.claim = Claim{start->stamp, start->group_rank, 2, start->restarts, NodeState::kRunning};
    desk_.say(link, again);
  }

  void leave_all(std::uint64_t link, bool really) {
    if (!really) return;
    Leave leave{143, "told to"};
    leave.round = Round(round());
    leave.all_nodes = true;
    desk_.say(link, leave);
  }

  /// Both stop their workers, and time passes until the run is over.
  void conclude() {
    desk_.shut_down();
    lie();
    for (const std::uint64_t link : {1U, 2U}) desk_.say(link, Stopped{Round(round())});
    lie();
    for (int left = 100; left > 0 && !desk_.run_.over(); --left) {
      desk_.beat_for(seconds(1), {1, 2});
    }
  }

  void lie() {
    if (!has_stranger_) return;
    for (int lies = lies_.below(4); lies > 0; --lies) say_anything();
  }

  void say_anything() {
    const Round round(std::max(1, this->round() + lies_.below(4) - 1));
    switch (lies_.below(8)) {
      case 0:
        return desk_.lose(kLiar);
      case 1:
        return desk_.say(kLiar, Reconnecting{});
      case 2: {
        Stopped stopped{round, milliseconds(100), 3, 4};
        if (lies_.maybe()) stopped.failure.emplace().status = ExitStatus::exited(99);
        return desk_.say(kLiar, stopped);
      }
      case 3: {
        Leave leave{77, "the stranger"};
        leave.round = round;
        leave.all_nodes = lies_.maybe();
        leave.requested = lies_.maybe();
        return desk_.say(kLiar, leave);
      }
      case 4:
      case 5: {
        Report report = desk_.report(round.value(), any_state(lies_));
        if (report.state == NodeState::kFailed) report = desk_.failed(round.value(), 99);
        return desk_.say(kLiar, report);
      }
      default:
        return say_hello(round);
    }
  }

  void say_hello(Round round) {
    Hello hello = desk_.hello("stranger", 2, 2);
    hello.agent = AgentId("stranger-" + std::to_string(lies_.below(3)));
    hello.seen = Round(lies_.maybe() ? round.value() : 0);
    if (lies_.below(4) > 0) {
      hello.claim = Claim{
          {round, "guessed"}, lies_.below(2), 2, RestartCount(lies_.below(3)), any_state(lies_)};
      hello.claim->restart_told = lies_.maybe();
    }
    desk_.say(kLiar, hello);
  }

  Draw draw_;
  Draw lies_;
  bool has_stranger_;
  Desk desk_;
};

}  // namespace

TEST_CASE("members of a run that is full are told the same, whatever a stranger says") {
  for (std::uint32_t seed = 1; seed <= kLives; ++seed) {
    const Life alone(seed, false);
    const Life haunted(seed, true);
    for (const std::uint64_t link : {1U, 2U}) {
      INFO("life " << seed << ", node " << link);
      REQUIRE(haunted.told(link) == alone.told(link));
    }
  }
}

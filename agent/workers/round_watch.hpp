// RoundWatch: looks after the ranks of one round that run: says when some finished early, dumps the
// stacks of all, and gives them up at --finish-timeout, or when the coordinator finds that the
// ranks of all nodes have made no progress for --hang-timeout, of which it tells for these, or when
// one is in uninterruptible sleep for TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT. Thread rule: the
// io_context's thread. Ownership: shared, because a dump may take longer than the round.
#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "agent/node/local_round.hpp"
#include "agent/node/worker_group.hpp"
#include "agent/output/log_tree.hpp"
#include "agent/proc/orphans.hpp"
#include "agent/watch/rank_watches.hpp"
#include "agent/watch/watch_lines.hpp"
#include "base/environment.hpp"
#include "base/stacks.hpp"
#include "net/disk_thread.hpp"

namespace spdlog {
class logger;
}

namespace ddprun {

class RoundRunner;

/// Stacks of the ranks of a node, and where they were written.
struct SavedStacks {
  StackDump dump{};
  std::string file{};  // empty: nowhere
};

/// The ranks of a round, once they are asked for.
struct WatchedRanks {
  std::vector<Rank> finished{};  // with code 0, by themselves
  std::vector<WorkerName> running{};
  std::vector<std::int64_t> steps{};                // that the running ones reported last; -1: none
  std::vector<bool> held{};                         // whether they wait until their output is taken
  std::vector<std::optional<TimePoint>> written{};  // when they last wrote
};

class RoundWatch : public std::enable_shared_from_this<RoundWatch> {
 public:
  struct Inputs {
    const Environment& environment;
    spdlog::logger& logger;
    DiskThread disk;
    Orphans& orphans;
    Round round;
    TimePoint run_started;
    const StopConfig& limits;
    std::uint16_t store_port;
    bool asks_for_input;  // ranks may read the user's terminal
  };
  RoundWatch(boost::asio::any_io_executor executor, Inputs inputs);

  /// Whose ranks they are; before the first update(). It is told of those that are given up, wait
  /// for the user to type, or have gone on, and how long no rank has made progress: again and again
  /// from
  /// --hang-timeout on, once when one moves again, and as the answer of look_again().
  void look_at(std::weak_ptr<RoundRunner> round) { round_ = std::move(round); }
  /// Whether no rank makes progress still; unless they end, which is told elsewhere.
  void look_again(int echo);
  /// Saves the stacks of all and gives them up; unless they end.
  void give_up_hang();
  /// The directory of the round; no dump before it has a file.
  void keep_in(const AttemptLogs& logs) { logs_ = logs; }
  /// The round is over: what is still being read of it is neither told nor written.
  void end() { over_ = true; }
  /// These are evidence of the end of the round.
  void keep(const StackDump& dump);
  /// Whether the evidence has the Python stacks of this worker.
  [[nodiscard]] bool has_python_of(pid_t worker) const;
  /// After every event of the group.
  void update(const WorkerGroup& group);

  /// Gives the round up because a worker exceeds the time of a section.
  void end_section(const WorkerName& worker, const SectionFacts& section);
  /// The same because a timer of a worker expired; its process gets the signal of the timer. A
  /// round that has failed ends without it.
  void end_timer(const WorkerName& worker, const WorkerTimer& timer);
  /// The stacks of all ranks that run, also in a file of the round's directory; within kStacksMax.
  /// `why` is in the file.
  [[nodiscard]] static boost::asio::awaitable<SavedStacks> dump(std::shared_ptr<RoundWatch> self,
                                                                std::string why);

 private:
  void arm();
  void on_timer();
  void say_partial(EarlyFinish::Due due);
  void begin_sample();
  [[nodiscard]] static boost::asio::awaitable<void> sample(std::shared_ptr<RoundWatch> self,
                                                           std::optional<int> echo);
  void sampled(const std::vector<RankProgress>* ranks, std::optional<int> echo);
  void begin_look_for_input(TimePoint now);
  [[nodiscard]] static boost::asio::awaitable<void> look_for_input(
      std::shared_ptr<RoundWatch> self, std::vector<InputWatch::Look> looks,
      std::vector<pid_t> leaders);
  /// Saves the stacks of all, and gives the round up for what is made of them; once.
  using FindingOf = std::function<Finding(const StackDump& dump)>;
  void end_round(int exit_code, std::string reason, FindingOf finding_of);
  [[nodiscard]] static boost::asio::awaitable<void> end_after_dump(std::shared_ptr<RoundWatch> self,
                                                                   int exit_code,
                                                                   std::string reason,
                                                                   FindingOf finding_of);
  void look_at_states(TimePoint now);
  [[nodiscard]] static boost::asio::awaitable<void> end_sleep(std::shared_ptr<RoundWatch> self,
                                                              std::vector<Sleeper> sleepers);
  [[nodiscard]] static boost::asio::awaitable<void> end_at_timer(std::shared_ptr<RoundWatch> self,
                                                                 WorkerName worker,
                                                                 WorkerTimer timer);
  void give_up(int exit_code, Finding why, const SavedStacks& stacks);
  [[nodiscard]] static boost::asio::awaitable<void> say_what_others_do(
      std::shared_ptr<RoundWatch> self);
  [[nodiscard]] WatchedRanks ranks() const;
  [[nodiscard]] PartialFacts partial_facts() const;
  void write(const std::string& path, std::string text);

  boost::asio::any_io_executor executor_;
  Inputs inputs_;
  AttemptLogs logs_{};
  EarlyFinish early_finish_;
  std::optional<HangWatch> hang_{};    // once all workers run, with --hang-timeout
  std::optional<SleepWatch> sleep_{};  // the same, with the time-out for state D
  std::optional<InputWatch> input_{};  // the same, where ranks may read the terminal
  bool looks_for_input_ = false;       // ranks are being looked at
  bool samples_ = false;               // one is being read
  bool told_quiet_ = false;            // by the last sample
  std::optional<int> echo_{};          // of a question that came meanwhile
  bool over_ = false;
  bool gives_up_ = false;  // once
  std::weak_ptr<RoundRunner> round_{};
  bool healthy_ = false;  // all workers were started, and none has failed
  boost::asio::steady_timer timer_;
  std::optional<TimePoint> armed_{};
  std::vector<pid_t> python_known_{};
};

}  // namespace ddprun

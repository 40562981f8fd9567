// RoundWorker: one worker process, and what belongs to it as long as it lives: its output, its
// cgroup, what it has left. It may outlive the round that started it: then the next round's runner
// takes it over. Plain data. Thread rule: the io_context's thread. Ownership: shared by its round
// and by the watch on its end.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/config/plan.hpp"
#include "agent/config/received_signal.hpp"
#include "agent/output/output.hpp"
#include "agent/output/output_plan.hpp"
#include "agent/proc/child.hpp"
#include "agent/proc/descendants.hpp"
#include "agent/proc/spawn.hpp"
#include "agent/worker_link/worker_links.hpp"
#include "base/clock.hpp"
#include "base/exit_status.hpp"
#include "base/limits.hpp"
#include "base/worker_exit.hpp"

namespace ddprun {

class RoundRunner;

struct RoundWorker {
  struct CpuSample {
    TimePoint at{};
    Duration used{};
  };

  WorkerPlan plan{};  // of its present round
  // What it was started with stays: its files and its mark.
  WorkerOutputPlan output_plan{};
  std::string error_file{};
  std::string mark{};
  std::optional<WorkerOutput> output{};
  std::optional<Child> child{};  // must not move
  CpuSample cpu_before{};        // its start, or the last sample but one
  CpuSample cpu_seen{};
  bool warm = false;  // started from the template
  int spare = 0;      // its number if it waited for the place that it has since this round
  int descendants_at_stop = 0;
  int last_signal = 0;                       // to its process group
  bool spares_pipe_ends = false;             // what it leaves gets SIGKILL but for these
  bool may_obey = false;                     // its exit may be the answer to a stop signal
  PassedSignals passed{};                    // that end nothing
  std::optional<Descendants> descendants{};  // once it has ended
  Evidence facts{};                          // of an exit that may be the first failure
  std::weak_ptr<RoundRunner> runner{};       // of its present round; expired: that is over
  bool may_exit = false;                     // its link says that it does
  bool exits_apart = false;                  // its round knew its end before it was gone
  /// Of a spare that has no round, and of one whose round knew its end before.
  std::function<void(const ExitStatus&)> ended_apart{};
};

/// A worker between two rounds.
struct CarriedWorker {
  LocalRank rank{};
  std::shared_ptr<RoundWorker> worker{};
  std::optional<WorkerLinks::Number> link{};
  int spare = 0;  // its number if it has taken no round so far; 0: it has
};
struct CarriedWorkers {
  std::vector<CarriedWorker> all{};
  Round round{0};                     // that they take part in; 0: not all in the same one
  std::vector<LocalRank> finished{};  // they exited with 0 in it
  TimePoint since{};                  // their round came to its end here
};
/// Starts the program with what the worker is planned to get; the rest is in `request`, whose leaf
/// is removed if that fails.
[[nodiscard]] Result<Child> spawn_planned(const boost::asio::any_io_executor& executor,
                                          const std::string& program, const RoundWorker& worker,
                                          SpawnRequest request);
/// Of one that has ended: SIGKILL to what it has left, until that is gone too.
[[nodiscard]] boost::asio::awaitable<void> bury(boost::asio::any_io_executor executor,
                                                Orphans& orphans,
                                                std::shared_ptr<RoundWorker> ended);
/// Whether it has begun to exit with code 0.
[[nodiscard]] bool exits_with_0(const RoundWorker& worker);
/// SIGKILL to it and what it has started.
void kill_all_of(const RoundWorker& worker);
/// SIGKILL to all of them and what they have started: no round takes them over.
void end_workers(const CarriedWorkers& carried);

/// Workers that have begun to exit, and whose end the round did not wait for
/// (RoundRunner::exits()). No process is started in the place of one, nor does ddprun exit, before
/// they are gone, or have been given up as those that SIGKILL does not end. Shared by the rounds.
class ExitingWorkers {
 public:
  explicit ExitingWorkers(boost::asio::any_io_executor executor)
      : news_(std::move(executor), TimePoint::min()) {}

  void begun() {
    ++count_;
    news_.expires_at(Clock::now() + kWaitAfterKill);
  }
  void gone() {
    --count_;
    news_.cancel();
  }
  [[nodiscard]] bool any() const { return count_ > 0 && Clock::now() < news_.expiry(); }
  [[nodiscard]] boost::asio::awaitable<void> wait_until_gone() {
    boost::system::error_code woken;
    while (any()) {
      co_await news_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, woken));
    }
  }

 private:
  int count_ = 0;
  boost::asio::steady_timer news_;  // until they are given up
};

}  // namespace ddprun

// RoundLinks: the links of the workers of one round: what they report goes to events, commands,
// evidence and the watch on hangs. Without a link they run as under any launcher. Thread rule: the
// io_context's thread. Ownership: facts and events outlive it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agent/config/plan.hpp"
#include "agent/events/events.hpp"
#include "agent/worker_link/worker_links.hpp"

namespace ddprun {

class RoundLinks : private LinkedRound {
 public:
  struct Workers {
    std::function<Rank(LocalRank)> rank_of;
    std::function<void(LocalRank, const worker_link::OpenSection&)> section_exceeded;
    /// It has taken this round, which was pushed to it.
    std::function<void(LocalRank)> joined;
    /// One more can take a new round without being started again; may be empty.
    std::function<void(LocalRank)> said_survives;
    /// One that can may have begun to exit; may be empty.
    std::function<void(LocalRank)> exits = {};
    /// A timer expired that is to end the process that has set it; may be empty.
    std::function<void(LocalRank, const WorkerTimer&)> timer_expired = {};
  };
  RoundLinks(const RoundFacts& facts, EventLog& events, std::shared_ptr<WorkerLinks> links,
             Workers workers)
      : facts_(facts), events_(events), links_(std::move(links)), workers_(std::move(workers)) {}
  ~RoundLinks() override { close(); }
  RoundLinks(const RoundLinks&) = delete;
  RoundLinks& operator=(const RoundLinks&) = delete;

  /// A worker of this round was started with this pid.
  void started(LocalRank rank, int pid);
  /// It has ended; what it has started may still report.
  void ended(LocalRank rank);
  /// All workers were started: the time-outs of sections count from now on.
  void running();
  /// Ends the links of this round's workers.
  void close();

  /// Whether it can take a new round without being started again.
  [[nodiscard]] bool survives(LocalRank rank) const;
  /// Lets go of a worker, for adopt() of the next round. None: it has no link.
  [[nodiscard]] std::optional<WorkerLinks::Number> release(LocalRank rank);
  /// A worker of an earlier round is this rank from now on.
  void adopt(LocalRank rank, WorkerLinks::Number worker);
  /// Tells a worker that was adopted of this round: see worker_link::Server::push().
  [[nodiscard]] bool push(LocalRank rank, Environment variables);

  [[nodiscard]] std::optional<worker_link::LastStep> last_step(LocalRank rank) const;
  /// It uses the link, but has reported none.
  [[nodiscard]] bool has_no_step_yet(LocalRank rank) const;

 private:
  void ready(LocalRank rank) override;
  void said_survives(LocalRank rank) override {
    if (workers_.said_survives) workers_.said_survives(rank);
  }
  void checkpoint(LocalRank rank, std::int64_t step, const std::string& path) override;
  void section_exceeded(LocalRank rank, const worker_link::OpenSection& section) override;
  [[nodiscard]] bool timer_expired(LocalRank rank, const WorkerTimer& timer) override;
  void joined(LocalRank rank, Round round) override;
  void exits(LocalRank rank) override {
    if (workers_.exits) workers_.exits(rank);
  }
  [[nodiscard]] std::optional<WorkerLinks::Number> number_of(LocalRank rank) const;

  const RoundFacts& facts_;
  EventLog& events_;
  std::shared_ptr<WorkerLinks> links_;
  Workers workers_;
  bool running_ = false;
  std::map<LocalRank, WorkerLinks::Number> numbers_;
};

}  // namespace ddprun

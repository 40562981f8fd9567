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
  /// What concerns the round: sections that are exceeded, and of its workers, who can take a new
  /// round, who has taken this one, which was pushed to it, and who may have begun to exit.
  using Hear = std::function<void(LocalRank, const worker_link::Report&)>;
  /// A timer expired that is to end the process that has set it.
  using EndAtTimer = std::function<void(LocalRank, const WorkerTimer&)>;
  RoundLinks(const RoundFacts& facts, EventLog& events, std::shared_ptr<WorkerLinks> links,
             Hear hear, EndAtTimer end_at_timer)
      : facts_(facts),
        events_(events),
        links_(std::move(links)),
        hear_(std::move(hear)),
        end_at_timer_(std::move(end_at_timer)) {}
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
  void hear(LocalRank local, const worker_link::Report& report) override;
  [[nodiscard]] bool timer_expired(LocalRank local, const WorkerTimer& timer) override;
  [[nodiscard]] std::optional<WorkerLinks::Number> number_of(LocalRank rank) const;

  const RoundFacts& facts_;
  EventLog& events_;
  std::shared_ptr<WorkerLinks> links_;
  Hear hear_;
  EndAtTimer end_at_timer_;
  bool running_ = false;
  std::map<LocalRank, WorkerLinks::Number> numbers_;
};

}  // namespace ddprun

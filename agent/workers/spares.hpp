// Spares: processes of this node that have loaded the program and wait for the place of a lost rank
// (--spares, docs/RECOVERY.md). A round takes one over as it does a worker of an earlier round.
// SparePool decides how many there are. Never needed for correctness: without one the rank is
// started. Thread rule: the io_context's thread. Ownership: shared with the watches on their ends;
// what the inputs refer to outlives end().
#pragma once

#include <sys/resource.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "agent/control/status.hpp"
#include "agent/events/events.hpp"
#include "agent/node/spare_pool.hpp"
#include "agent/output/console.hpp"
#include "agent/output/log_tree.hpp"
#include "agent/output/output_plan.hpp"
#include "agent/proc/cgroup.hpp"
#include "agent/proc/orphans.hpp"
#include "agent/worker_link/worker_links.hpp"
#include "agent/workers/round_worker.hpp"
#include "base/environment.hpp"

namespace spdlog {
class logger;
}

namespace ddprun {

struct SpareInputs {
  const LaunchConfig& config;
  const Environment& environment;
  spdlog::logger& logger;
  EventLog& events;
  Orphans& orphans;
  DiskThread disk;
  std::shared_ptr<LogTree>& logs;
  Consoles consoles;
  std::shared_ptr<WorkerLinks> links;
  std::string nonce;
  std::optional<rlimit> descriptor_limit;
  std::optional<Cgroup> cgroup;
  std::shared_ptr<std::uint64_t> output_bytes;
};

class Spares : public std::enable_shared_from_this<Spares>, private LinkedRound {
 public:
  Spares(const boost::asio::any_io_executor& executor, SpareInputs inputs);

  /// A round goes its way: all its ranks take part, and each of them could take another one.
  void round_runs();
  /// This node has no part in the run before another one is lost: all places of it may be needed.
  void node_waits();
  /// A round begins or ends.
  void pause();
  /// Adds those that wait for the local ranks that no worker of an earlier round has.
  void fill(CarriedWorkers& carried);
  /// Ranks are started again although there are to be spares: says why there is none, once.
  void say_if_none();

  /// Stops all of them as long as this process is stopped, or continues them.
  void pause_groups(bool on);

  [[nodiscard]] std::vector<control::SpareStatus> status() const;
  /// In the environments of those that are there.
  [[nodiscard]] std::vector<std::string> marks() const;
  /// Ends all of them with SIGKILL: they have nothing to save. None is started any more.
  void stop();
  /// The same; completes when they have ended, or after kWaitAfterKill.
  [[nodiscard]] boost::asio::awaitable<void> end();

 private:
  struct Spare {
    std::shared_ptr<RoundWorker> worker{};
    WorkerLinks::Number link{};
  };
  struct Files {
    Result<std::string> program;
    SpareOutput output;
  };

  void start_if_due();
  void open_files(int spare);
  void on_files(int spare, const Files& files);
  [[nodiscard]] Result<void> spawn_spare(int spare, const std::string& program, SpareOutput output);
  void give_up(int spare, const std::string& why);
  void ended(int spare, const ExitStatus& status);
  void kill(int spare);
  [[nodiscard]] static boost::asio::awaitable<void> bury(std::shared_ptr<Spares> self,
                                                         std::shared_ptr<RoundWorker> worker);

  void hear(LocalRank spare, const worker_link::Report& report) override;

  boost::asio::any_io_executor executor_;
  SpareInputs inputs_;
  SparePool pool_;
  std::map<int, Spare> spares_;  // by number
  boost::asio::steady_timer due_;
  boost::asio::steady_timer ended_;  // never expires by itself: cancelled when the last is gone
  int processes_ = 0;                // that have not ended, or have left something
  bool said_none_ = false;
  bool over_ = false;
};

}  // namespace ddprun

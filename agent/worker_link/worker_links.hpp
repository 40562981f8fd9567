// WorkerLinks: the links of this run's workers (agent/worker_link), made once, and which round has
// which worker. A worker that survives its round keeps its link. Thread rule: the io_context's
// thread. Ownership: shared by the rounds.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agent/config/launch_config.hpp"
#include "agent/worker_link/server.hpp"
#include "agent/worker_link/timer_pipe.hpp"
#include "base/types.hpp"

namespace spdlog {
class logger;
}

namespace ddprun {

/// The round that a worker is in.
class LinkedRound {
 public:
  LinkedRound() = default;
  LinkedRound(const LinkedRound&) = delete;
  LinkedRound& operator=(const LinkedRound&) = delete;
  virtual ~LinkedRound() = default;

  virtual void hear(LocalRank rank, const worker_link::Report& report) = 0;
  /// A timer of the worker, or of a process of it, expired. False: its time counts from when all
  /// workers run.
  [[nodiscard]] virtual bool timer_expired(LocalRank rank, const WorkerTimer& timer) {
    static_cast<void>(rank);
    static_cast<void>(timer);
    return false;
  }
};

/// A directory in memory, so that no file system can hold up a start, which no other user can
/// enter.
[[nodiscard]] Result<std::string> private_directory();

class WorkerLinks : private worker_link::Target {
 public:
  using Number = worker_link::WorkerNumber;
  struct Seat {
    LinkedRound* round = nullptr;  // null: held between two rounds, its reports are not heard
    LocalRank rank{};
  };

  /// What workers find in DDPRUN_WORKER_SOCKET, the same in every round; empty without a private
  /// directory in memory for it, which costs one note.
  [[nodiscard]] std::string open(const boost::asio::any_io_executor& executor,
                                 const std::string& nonce, const LaunchConfig& config,
                                 spdlog::logger& logger);
  [[nodiscard]] bool is_open() const { return server_ != nullptr; }
  /// Ends every link, and reads no more timers.
  void close() {
    server_.reset();
    timers_.reset();
  }
  /// Reads the timers of all workers from a pipe.
  void read_timers(const boost::asio::any_io_executor& executor, const OpenPipe& pipe,
                   spdlog::logger& logger);
  /// The path of that pipe; empty: there is none.
  [[nodiscard]] std::string timer_pipe() const { return timers_ ? timers_->path() : ""; }
  /// All workers of a round run: see LinkedRound::timer_expired().
  void round_runs() {
    if (timers_) timers_->round_runs();
  }
  /// The workers were stopped for so long.
  void extend_timers(Duration by) {
    if (timers_) timers_->extend(by);
  }
  void ask_to_stop(int signal) {
    if (server_) server_->ask_to_stop(signal);
  }

  /// A worker that runs with this pid, until ended(); its processes have this mark.
  [[nodiscard]] Number add(int pid, std::string mark, Seat seat);
  /// Its pid may be another process's from now on. What it has started keeps its links.
  void ended(Number worker);
  void move(Number worker, Seat seat);
  void look_again(Number worker) {
    if (server_) server_->look_again(worker);
  }
  /// Ends its links.
  void remove(Number worker);

  [[nodiscard]] std::optional<worker_link::LastStep> last_step(Number worker) const {
    return server_ ? server_->last_step(worker) : std::nullopt;
  }
  [[nodiscard]] bool is_linked(Number worker) const {
    return server_ && server_->is_linked(worker);
  }
  [[nodiscard]] bool is_survivor(Number worker) const {
    return server_ != nullptr && server_->survives(worker);
  }
  [[nodiscard]] bool push(Number worker, const worker_link::PushedRound& round) {
    return server_ != nullptr && server_->push(worker, round);
  }

 private:
  struct Worker {
    int pid = 0;  // 0: ended
    std::string mark{};
    Seat seat{};
  };

  [[nodiscard]] std::optional<Owner> owner_of(int pid) const override;
  void hear(Number worker, const worker_link::Report& report) override;
  [[nodiscard]] bool timer_expired(const WorkerTimer& timer) const;
  [[nodiscard]] std::optional<Number> by_pid(int pid) const;
  [[nodiscard]] std::optional<Owner> by_mark(int pid) const;

  std::map<Number, Worker> workers_;
  int last_number_ = 0;
  std::optional<std::string> path_;  // none: not opened yet
  std::unique_ptr<worker_link::Server> server_;
  std::unique_ptr<TimerPipe> timers_;
};

}  // namespace ddprun

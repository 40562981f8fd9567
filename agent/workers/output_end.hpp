// OutputEnd: what follows when a run is over: consoles and files get the time to take what was said
// and written, a report that a console did not take is put into the log directory, and a temporary
// one goes. Thread rule: the io_context's thread. Ownership: the log tree (null: none was opened),
// the events and the logger outlive it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "agent/events/events.hpp"
#include "agent/output/console.hpp"
#include "agent/output/log_tree.hpp"
#include "agent/proc/disk_threads.hpp"
#include "base/result.hpp"

namespace spdlog {
class logger;
}

namespace ddprun {

// How long the end of a run waits for a console that takes nothing; kConsoleHurryMax follows.
inline constexpr std::chrono::seconds kConsoleFlushMax{60};

class OutputEnd {
 public:
  OutputEnd(Consoles consoles, std::shared_ptr<LogTree>& logs, DiskThreads& disks, EventLog& events,
            spdlog::logger& logger)
      : consoles_(std::move(consoles)),
        logs_(logs),
        disks_(disks),
        events_(events),
        logger_(logger) {}

  /// Completes when everything is said, and kConsoleFlushMax and a little later where consoles take
  /// nothing more. After a failure (`exit_code`) the report that no console has is kept.
  [[nodiscard]] boost::asio::awaitable<void> finish(int exit_code);
  [[nodiscard]] bool has_logs() const { return logs_ != nullptr; }
  [[nodiscard]] bool began() const { return began_; }
  /// A stop signal came while workers ran: no console is waited for without limit.
  void stop_keeping();
  /// A second one, or one at the end: what does not take what was said or written is waited for no
  /// longer.
  void hurry();
  /// A key sent this signal: the terminal shows it as ^C, perhaps behind a worker's progress bar.
  /// The next line begins below.
  void end_echo(int signal);

 private:
  void keep_what_was_not_taken(int exit_code);
  void log_missing_lines();
  void log_report_place(const Result<std::string>& kept);

  Consoles consoles_;
  std::shared_ptr<LogTree>& logs_;
  DiskThreads& disks_;
  EventLog& events_;
  spdlog::logger& logger_;
  bool began_ = false;
  bool hurried_ = false;
};

}  // namespace ddprun

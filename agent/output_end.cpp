#include "agent/output_end.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "agent/proc/limits.hpp"
#include "agent/wait_note.hpp"

namespace ddprun {

namespace asio = boost::asio;

asio::awaitable<void> OutputEnd::finish() {
  began_ = true;
  TimePoint deadline = Clock::now() + kConsoleFlushMax;
  co_await consoles_.err->flush(deadline);
  co_await consoles_.out->flush(deadline);
  // What is healthy has its moment all the same.
  deadline = std::max(deadline, Clock::now() + kDiskHurryMax);
  if (hurried_) disks_.hurry();
  keep_what_was_not_taken();
  const asio::any_io_executor executor = disks_.logs.executor();
  std::optional<WaitNote> note(std::in_place, executor, logger_, "TORCHELASTIC_ERROR_FILE",
                               deadline);
  co_await disks_.error_file.idle(deadline);
  note.reset();
  co_await consoles_.err->flush(deadline);  // a warning about that
  if (logs_) note.emplace(executor, logger_, "the log directory " + logs_->place(), deadline);
  co_await disks_.logs.idle(deadline);
  note.reset();
  co_await consoles_.out->flush(Clock::now());  // where the report is
}

void OutputEnd::hurry() {
  hurried_ = true;
  consoles_.err->hurry();
  consoles_.out->hurry();
  disks_.hurry();
}

void OutputEnd::keep_what_was_not_taken() {
  if (!logs_) return;
  std::string report = consoles_.err->unwritten_own_lines();
  const std::uint64_t lines = consoles_.err->unshown_lines();
  if (!report.empty() && lines != 0) {
    report += "ddprun: " + std::to_string(lines) + " lines of the workers were not shown\n";
  }
  const auto kept = std::make_shared<std::string>();
  const auto work = [logs = logs_, report, kept] {
    if (!report.empty()) {
      const auto path = logs->keep_report(report);
      if (path) *kept = *path;
    }
    logs->finish();
  };
  disks_.logs.post(work, [this, kept] { tell_where(*kept); });
}

void OutputEnd::tell_where(const std::string& path) {
  if (path.empty() || consoles_.out == consoles_.err) return;
  consoles_.out->write_own("ddprun: standard error took nothing; what ddprun had to say is in " +
                           path + "\n");
}

}  // namespace ddprun

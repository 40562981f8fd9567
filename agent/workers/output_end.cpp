#include "agent/workers/output_end.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "agent/output/wait_line.hpp"
#include "base/format.hpp"
#include "base/message_line.hpp"
#include "base/printable.hpp"
#include "base/program_name.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

constexpr const char* kStderrName = "standard error";

std::string missing_lines_of(const ConsoleWriter& console, const std::string& name) {
  const auto count = static_cast<long long>(console.missing_lines());
  return warning_line("CONSOLE", count_text(count, "line") + " of the workers " +
                                     (count == 1 ? "is" : "are") + " missing on " + name + ": " +
                                     console.missing_because()) +
         "\n";
}

}  // namespace

asio::awaitable<void> OutputEnd::finish(int exit_code) {
  began_ = true;
  TimePoint deadline = Clock::now() + kConsoleFlushMax;
  co_await consoles_.err->flush(deadline, kConsoleFlushMax);
  co_await consoles_.out->flush(deadline, kConsoleFlushMax);
  // What is healthy has its moment all the same.
  deadline = std::max(deadline, Clock::now() + kDiskHurryMax);
  if (hurried_) disks_.hurry();
  keep_what_was_not_taken(exit_code);
  log_missing_lines();
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

void OutputEnd::end_echo(int signal) {
  const bool is_key = signal == SIGINT || signal == SIGQUIT || signal == SIGTSTP;
  if (!is_key || ::isatty(STDERR_FILENO) != 1) return;
  if (consoles_.err->line_is_drawn()) return consoles_.err->erase_line();
  consoles_.err->write_own("\n");
}

void OutputEnd::stop_keeping() {
  consoles_.err->stop_keeping();
  consoles_.out->stop_keeping();
}

void OutputEnd::hurry() {
  hurried_ = true;
  consoles_.err->hurry();
  consoles_.out->hurry();
  disks_.hurry();
}

void OutputEnd::keep_what_was_not_taken(int exit_code) {
  if (!logs_) return;
  const ConsoleWriter& err = *consoles_.err;
  std::string report = (exit_code == 0 ? "" : err.lost_own_lines()) + err.unwritten_own_lines();
  if (!report.empty() && err.missing_lines() != 0) report += missing_lines_of(err, kStderrName);
  const auto kept = std::make_shared<std::optional<Result<std::string>>>();
  const auto work = [logs = logs_, report, kept, write_rest = events_.take_rest()] {
    if (!report.empty()) *kept = logs->keep_report(report);
    write_rest(*logs);
    logs->finish();
  };
  disks_.logs.post(work, [this, kept] {
    if (*kept) log_report_place(**kept);
  });
}

// Where lines are missing at the end of a console, it has no place for a message: the other one
// has.
void OutputEnd::log_missing_lines() {
  if (consoles_.out == consoles_.err) return;
  if (consoles_.out->missing_lines() != 0) {
    consoles_.err->write_own(missing_lines_of(*consoles_.out, "standard output"));
  }
  if (consoles_.err->missing_lines() != 0) {
    consoles_.out->write_own(missing_lines_of(*consoles_.err, kStderrName));
  }
}

void OutputEnd::log_report_place(const Result<std::string>& kept) {
  if (consoles_.out == consoles_.err) return;
  const std::string what = kept ? "in " + *kept : "lost: " + kept.error().sentence;
  consoles_.out->write_own(program_name() +
                           ": standard error took nothing; what ddprun had to say is " +
                           printable(what) + "\n");
}

}  // namespace ddprun

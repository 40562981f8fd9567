#include "agent/output_end.hpp"

#include <string>

#include "agent/proc/limits.hpp"

namespace ddprun {

namespace asio = boost::asio;

asio::awaitable<void> OutputEnd::finish() {
  began_ = true;
  const TimePoint deadline = Clock::now() + kConsoleFlushMax;
  co_await consoles_.err->flush(deadline);
  co_await consoles_.out->flush(deadline);
  keep_what_was_not_taken();
  if (logs_) logs_->finish();
}

void OutputEnd::hurry() {
  consoles_.err->hurry();
  consoles_.out->hurry();
}

void OutputEnd::keep_what_was_not_taken() {
  std::string report = consoles_.err->unwritten_own_lines();
  if (report.empty() || !logs_) return;
  const std::uint64_t lines = consoles_.err->unshown_lines();
  if (lines != 0) {
    report += "ddprun: " + std::to_string(lines) + " lines of the workers were not shown\n";
  }
  const auto kept = logs_->keep_report(report);
  if (!kept || consoles_.out == consoles_.err) return;
  consoles_.out->write_own("ddprun: standard error took nothing; what ddprun had to say is in " +
                           *kept + "\n");
}

}  // namespace ddprun

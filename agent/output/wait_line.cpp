#include "agent/output/wait_line.hpp"

#include <spdlog/logger.h>

#include <algorithm>
#include <utility>

#include "agent/proc/process_table.hpp"
#include "agent/report/lines.hpp"
#include "base/format.hpp"
#include "base/printable.hpp"
#include "rendezvous/client/membership.hpp"

namespace ddprun {

namespace {

using std::chrono::seconds;

std::string of_limit(TimePoint since, std::optional<TimePoint> until, TimePoint now) {
  const std::string waited = duration_text(std::chrono::floor<seconds>(now - since));
  if (!until) return ", " + waited;
  return ", " + waited + " of " + duration_text(std::chrono::round<seconds>(*until - since));
}

std::string in_seconds(TimePoint until, TimePoint now) {
  return duration_text(std::max(std::chrono::ceil<seconds>(until - now), seconds(0)));
}

std::string text_of(const CoordinatorWait& wait, TimePoint now) {
  return "waiting for the coordinator at " + printable(wait.address) +
         of_limit(wait.since, wait.until, now);
}

std::string text_of(const NodesWait& wait, TimePoint now) {
  if (wait.here < wait.min) {
    return "waiting for " + std::to_string(wait.min - wait.here) + " of " +
           count_text(wait.min, "node") + of_limit(wait.since, wait.until, now);
  }
  if (!wait.until) return "waiting as a spare node" + of_limit(wait.since, {}, now);
  return count_text(wait.here, "node") + " of at most " + std::to_string(wait.max) +
         " joined, starting in " + in_seconds(*wait.until, now);
}

std::string text_of(const GpuWait& wait, TimePoint now) {
  return "waiting for GPU memory to be freed" + of_limit(wait.since, wait.until, now);
}

std::string text_of(const StopWait& wait, TimePoint now) {
  if (wait.running == 0) return {};
  return "stopping " + std::to_string(wait.running) + " of " + count_text(wait.all, "rank") +
         (now < wait.kill_at ? ", SIGKILL in " + in_seconds(wait.kill_at, now) : ", SIGKILL sent");
}

bool is_in_background(pid_t pid) {
  const auto process = find_process(pid);
  return process && process->foreground_group > 0 && process->group != process->foreground_group;
}

}  // namespace

std::string wait_text(const Wait& wait, TimePoint now) {
  return std::visit([now](const auto& of_kind) { return text_of(of_kind, now); }, wait);
}

TimePoint next_drawing(TimePoint since, TimePoint now) {
  if (now < since + kWaitLineDelay) return since + kWaitLineDelay;
  return since + std::chrono::floor<seconds>(now - since) + seconds(1);
}

// A character of three bytes or more may take two columns.
std::string cut_to_window(const std::string& text, int columns) {
  std::size_t end = 0;
  for (int left = columns - 1; end < text.size();) {
    std::size_t next = end + 1;
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xc0U) == 0x80U) ++next;
    left -= next - end > 2 ? 2 : 1;
    if (left < 0) break;
    end = next;
  }
  return text.substr(0, end);
}

void WaitLine::begin(Of of, std::function<Wait()> wait) {
  wait_ = std::move(wait);
  if (std::exchange(of_, of) == of) return;
  since_ = Clock::now();
  arm();
}

void WaitLine::end(Of of) {
  if (of_ != of) return;
  of_ = Of::kNothing;
  timer_.cancel();
  console_->erase_line();
}

void WaitLine::arm() {
  timer_.expires_at(next_drawing(since_, Clock::now()));
  timer_.async_wait([this](const boost::system::error_code& why) {
    if (why || of_ == Of::kNothing) return;
    draw();
    arm();
  });
}

void WaitLine::draw() {
  const std::string text = wait_text(wait_(), Clock::now());
  const std::string shown = cut_to_window(text, terminal_->columns());
  if (shown.empty() || is_in_background(user_)) return console_->erase_line();
  console_->draw_line(shown);
}

WaitNote::WaitNote(const boost::asio::any_io_executor& executor, spdlog::logger& logger,
                   const std::string& what, TimePoint limit)
    : due_(executor, Clock::now() + client::kQuietMax) {
  due_.async_wait([&logger, what, limit](const boost::system::error_code& over) {
    if (over) return;
    const auto left = std::chrono::ceil<std::chrono::seconds>(limit - Clock::now());
    const std::string end = limit == TimePoint::max() ? "a stop signal ends the wait"
                                                      : "gives up in " + duration_text(left);
    logger.info(run_note("waiting for " + what + ": its file system does not respond; " + end));
  });
}

}  // namespace ddprun

#include "agent/output/wait_text.hpp"

#include <algorithm>
#include <chrono>

#include "base/count_text.hpp"
#include "base/duration_text.hpp"
#include "base/printable.hpp"

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

}  // namespace ddprun

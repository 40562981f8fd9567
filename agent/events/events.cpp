#include "agent/events/events.hpp"

#include <cstddef>
#include <utility>

namespace ddprun {

namespace {

// Lines of events.jsonl that wait for their file, or for a disk that stalls. Beyond it the oldest
// are lost, and the gap in their numbers shows it.
constexpr std::size_t kEventQueueBytesMax = 256 * 1024;

}  // namespace

EventLog::EventLog(Options options, Warn warn)
    : options_(std::move(options)),
      warn_([told = told_, warn = std::move(warn)](const std::string& sentence) {
        if (!*told) warn(sentence);
      }) {}

void EventLog::record(RunEvent event) {
  for (const auto& [owner, observer] : observers_) observer(event, since_start());
  if (options_.place == Options::Place::kNowhere) return;
  using std::chrono::milliseconds;
  EventStamp stamp{++recorded_,
                   std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now()),
                   since_start(), options_.run.value(), options_.host};
  const std::string line = event_line(event, stamp);
  if (!file_) return keep(line);
  if (!file_->full()) file_->append(line, warn_);
}

void EventLog::keep(const std::string& line) {
  waiting_ += line;
  if (waiting_.size() <= kEventQueueBytesMax) return;
  const std::size_t over = waiting_.size() - kEventQueueBytesMax / 2;
  waiting_.erase(0, waiting_.find('\n', over) + 1);
}

void EventLog::write_to(std::shared_ptr<LogFile> file) {
  if (file_) file_->close();
  file_ = std::move(file);
  file_->may_be_lost();
  file_->append(std::exchange(waiting_, {}), warn_);
}

std::function<void(LogTree&)> EventLog::take_rest() {
  return [lines = std::exchange(waiting_, {}), result = std::exchange(result_, {})](LogTree& tree) {
    if (!tree.stays()) return;
    // Errors are ignored: the report is on the console, and this disk had its warning.
    if (!lines.empty()) static_cast<void>(tree.keep_file(kEventsFile, lines));
    if (!result.empty()) static_cast<void>(tree.keep_file(kResultFile, result));
  };
}

}  // namespace ddprun

// What workers write for their agent, and what `ddprun explain` reads: lines of the timers' pipe,
// the error file of torch's recorder, and the events of a run.
#include <chrono>

#include "agent/explain/explain.hpp"
#include "agent/report/error_file.hpp"
#include "agent/watch/timer_table.hpp"
#include "base/limits.hpp"
#include "tests/fuzz/target.hpp"

using namespace ddprun;

namespace {

void check_timers(std::string_view text) {
  const TimePoint now = TimePoint() + std::chrono::hours(1);
  TimerTable table;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto request = parse_timer_request(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!request) continue;
    DDPRUN_ASSERT(request->pid > 0 && request->signal >= 0);
    if (request->releases()) {
      table.release(*request);
    } else if (table.set(*request, 1, now, 1e9)) {
      DDPRUN_ASSERT(table.next() && *table.next() >= now);
    }
  }
  for (const WorkerTimer& timer : table.take_due(now)) table.hold(timer);
  table.start_held(now);
  table.extend(std::chrono::seconds(1));
}

void check_error_file(const std::string& text) {
  const ErrorFile file = read_error_file(text);
  DDPRUN_ASSERT(file.form != ErrorFile::Form::kAbsent);
  const auto with_code = with_error_code(text, -9);
  if (!with_code) return;
  const ErrorFile again = read_error_file(*with_code);
  DDPRUN_ASSERT(again.form == file.form && again.error.message == file.error.message);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::text_of(data, size));
  check_timers(text);
  check_error_file(text);
  // A blank first asks for a file that is too long, of which the middle is not kept.
  if (text.starts_with(' ')) {
    const std::string middle(kErrorFileBytesMax, 'x');
    check_error_file(text.substr(0, size / 2) + middle + text.substr(size / 2));
  }
  auto record = explain::read_record("events.jsonl", text);
  const auto explained = explain::explain({std::move(record)});
  DDPRUN_ASSERT(explained ? !explained->empty() : !explained.error().sentence.empty());
  return 0;
}

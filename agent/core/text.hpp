// Pieces of messages for people: durations, times of day, the last lines of a worker's output.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/core/exit_record.hpp"
#include "base/clock.hpp"

namespace ddprun {

/// "12 ms", "1.4 s", "75 s", "5 m 12 s", "3 h 12 m": two figures are enough to tell what happened.
[[nodiscard]] std::string duration_text(Duration duration);

/// "11:02:41.118Z", UTC.
[[nodiscard]] std::string time_text(WallTime when);

/// "1 rank", "7 ranks".
[[nodiscard]] std::string ranks_text(int count);

/// What a report quotes of a stderr: from the last line with a Python traceback's heading on, if
/// there is one, and the last kReportLinesMax lines of that. Of a progress bar (carriage returns)
/// the last state counts; control characters are shown as '?', so that a quotation cannot move the
/// cursor.
[[nodiscard]] std::vector<std::string> quotable_lines(std::string_view tail);

}  // namespace ddprun

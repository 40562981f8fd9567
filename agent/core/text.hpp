// Pieces of messages for people: times of day, the last lines of a worker's output.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/worker_exit.hpp"

namespace ddprun {

/// "11:02:41.118Z", UTC.
[[nodiscard]] std::string time_text(WallTime when);

/// "rank 12 (local 4, pid 48213) on gpu-02".
[[nodiscard]] std::string who(const WorkerName& worker);

/// A further line of a message: "\n  when      text".
[[nodiscard]] std::string labelled(const std::string& label, const std::string& text);

/// One line of foreign text: cut at kReportLineBytesMax, made printable.
[[nodiscard]] std::string quotable(std::string_view line);

/// What a report quotes of a stderr: the last Python traceback, if there is one, with those before
/// it in the same chain ("During handling of the above exception, ..."); else the last lines. At
/// most kReportLinesMax: a chain is shortened in the middle, and says so. Of a progress bar
/// (carriage returns) the last state counts; the lines are made printable, so that a quotation
/// cannot move the cursor.
[[nodiscard]] std::vector<std::string> quotable_lines(std::string_view tail);

}  // namespace ddprun

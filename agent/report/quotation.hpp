// quotation: which lines of a worker's output a report quotes. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/exit_status.hpp"

namespace ddprun {

[[nodiscard]] inline bool contains(std::string_view line, std::string_view text) {
  return line.find(text) != std::string_view::npos;
}

/// One line of foreign text, made printable; of one longer than kReportLineBytesMax the beginning
/// and the end.
[[nodiscard]] std::string quotable(std::string_view line);

/// What a report quotes of a stderr: the last Python traceback, if there is one and the worker did
/// not continue after it, with those before it in the same chain ("During handling of the above
/// exception, ..."); or the report of the C++ runtime or of a launcher inside the worker, if that
/// came last; or the last lines before the report of Python's fault handler, and that; else the
/// last lines. Of a crash of Python that shuts down after a traceback there is one line behind it.
/// At most kReportLinesMax: a chain is shortened in the middle, another report at its end, a run of
/// lines of one form (frames of a stack, steps) in its middle, and each says so. Of a progress bar
/// (carriage returns) the last state counts; the lines are made printable, so that a quotation
/// cannot move the cursor. `status`: of the process; none: the text is one of an exception.
[[nodiscard]] std::vector<std::string> quotable_lines(
    std::string_view tail, const std::optional<ExitStatus>& status = std::nullopt);

/// Of quoted lines that are one traceback, the line with its exception, those that are set off
/// below it (more of its message), and what the program printed after it, which may be why it
/// ended; of many the first and the last ones. Empty: they are none or a chain, that line is not
/// certain, or a line behind it reports a failure, too.
[[nodiscard]] std::vector<std::string> exception_of(const std::vector<std::string>& lines);

/// The exception with which a text ends, of a traceback that no program prints on: of a process
/// that raised it and is slow to exit. Empty: none, one that ended a thread, or that was logged.
[[nodiscard]] std::string last_exception(std::string_view tail);
/// The same of one that ended a thread, behind kInThread.
[[nodiscard]] std::string last_exception_in_thread(std::string_view tail);

/// Quoted lines once more shortened, to what a screen has left.
[[nodiscard]] std::vector<std::string> fitted(const std::vector<std::string>& lines,
                                              std::size_t lines_max);

}  // namespace ddprun

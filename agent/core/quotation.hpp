// quotation: which lines of a worker's output a report quotes. Pure, no thread rule.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun {

/// Whether Python begins a traceback with this line.
[[nodiscard]] bool is_traceback_heading(std::string_view line);

/// One line of foreign text, made printable; of one longer than kReportLineBytesMax the beginning
/// and the end.
[[nodiscard]] std::string quotable(std::string_view line);

/// What a report quotes of a stderr: the last Python traceback, if there is one, with those before
/// it in the same chain ("During handling of the above exception, ..."); or the report of Python's
/// fault handler, of the C++ runtime or of a launcher inside the worker, if that came last; else
/// the last lines. Of a crash of Python that shuts down after a traceback there is one line behind
/// it. At most kReportLinesMax: a chain is shortened in the middle, another report at its end, a
/// long run of native frames to its first ones, and each says so. Of a progress bar (carriage
/// returns) the last state counts; the lines are made printable, so that a quotation cannot move
/// the cursor.
[[nodiscard]] std::vector<std::string> quotable_lines(std::string_view tail);

/// Of quoted lines that are one traceback, the line with its exception; empty: they are none, or a
/// chain.
[[nodiscard]] std::string exception_of(const std::vector<std::string>& lines);

/// The first `lines_max` lines, the last of which says how many are left out.
[[nodiscard]] std::vector<std::string> first_lines(std::vector<std::string> lines,
                                                   std::size_t lines_max);
/// Quoted lines once more shortened, to what a screen has left.
[[nodiscard]] std::vector<std::string> fitted(const std::vector<std::string>& lines,
                                              std::size_t lines_max);

}  // namespace ddprun

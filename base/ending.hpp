// ending: where a worker's output has its last traceback, in the forms that formatters of Python
// print, and whether the worker went on after it: what a process survived is not why it ended.
// Pure, no thread rule.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/exit_status.hpp"

namespace ddprun {

using LineViews = std::vector<std::string_view>;
[[nodiscard]] LineViews views_of(const std::vector<std::string>& lines);
/// The lines of a text.
[[nodiscard]] LineViews split_lines(std::string_view text);

/// Without the "[rank3]: " that torch puts before each line.
[[nodiscard]] std::string_view without_rank(std::string_view line);
/// Without what an exception group puts before the lines of its members: "    | ".
[[nodiscard]] std::string_view without_gutter(std::string_view line);
/// Blanks, or a frame that is drawn, stand before the text.
[[nodiscard]] bool is_indented(std::string_view line);

// The report of Python's fault handler begins so.
inline constexpr std::string_view kFaultReport = "Fatal Python error: ";

/// Whether Python, or what formats its exceptions, begins a traceback with this line.
[[nodiscard]] bool is_traceback_heading(std::string_view line);

/// "During handling of the above exception, ...", between two tracebacks of a chain.
[[nodiscard]] bool links_tracebacks(std::string_view line);

/// "ValueError: text", "torch.OutOfMemoryError: text", "KeyboardInterrupt".
[[nodiscard]] bool is_exception(std::string_view line);

/// A line without its numbers: "step 7: loss 0.31" and "step 8: loss 0.29" have one shape.
[[nodiscard]] std::string shape_of(std::string_view line);
/// The shapes of the lines before line `end`.
[[nodiscard]] std::set<std::string> shapes_before(const LineViews& lines, std::size_t end);

/// What libraries print around an end, whatever that was: native frames, warnings, clean-up.
[[nodiscard]] bool is_noise(std::string_view line);
/// "ERROR:root:text", "2026-01-02 03:04:05 - WARNING - text": a logger puts it above a traceback,
/// which the program has caught then.
[[nodiscard]] bool is_log_record(std::string_view line);
/// A line by which a program says that something failed: "FATAL: text", "... ERROR text".
[[nodiscard]] bool reports_failure(std::string_view line);

/// The last traceback, with those before it in the same chain ("During handling of the above
/// exception, ..."). The first of a chain is the root cause.
struct Traceback {
  std::size_t begin = 0;      // the heading of the first one, or that of its thread
  std::size_t first_end = 0;  // behind the first one, and behind what links it to the next
  std::size_t exception = 0;  // the line that names the last exception; `end`: not found
  std::size_t end = 0;        // behind that line, or behind all lines
  bool is_of_thread = false;  // it ended a thread, but not the process
  bool is_of_child = false;   // it ended a process of Python's multiprocessing
  bool is_caught = false;     // a function caught it, or it is of another process
  bool is_followed = false;   // by some of these, while Python shut down after it
  /// It ended nothing of the process by itself.
  [[nodiscard]] bool is_aside() const { return is_of_thread || is_of_child || is_caught; }
};
/// None for one that is told not to have ended anything ("Exception ignored in: ..."). One of a
/// thread or a child process, or of a hook that caught it, while Python shut down after another
/// exception is not the last.
[[nodiscard]] std::optional<Traceback> last_traceback(const LineViews& lines);

/// Behind the aside that line `at` begins: what Python, a logger, a thread or a child prints about
/// an exception that ended nothing of the process. `at`: it begins none.
[[nodiscard]] std::size_t end_of_aside(const LineViews& lines, std::size_t at);
/// The lines by which a process accounts for its own end, in their places: empty are those that
/// Python, hooks, threads, children and loggers print beside it or while Python shuts down.
[[nodiscard]] LineViews own_account(LineViews lines);

/// The line that says most about why a process ended: the exception of the last traceback, of one
/// that another was the direct cause of, that one; else the last statement of the process itself.
/// Empty: there are no lines.
[[nodiscard]] std::string_view telling_line(const LineViews& lines);
/// What two ends that are alike have in common, but for numbers: that line, and the program's last
/// word behind an exception, which it may have survived.
[[nodiscard]] std::string likeness_of(const LineViews& lines);
/// Whether all lines are what libraries print around an end.
[[nodiscard]] bool says_nothing(const LineViews& lines);

/// Whether Python ends in this way when an exception is not caught: exit code 1, or a crash while
/// it shuts down.
[[nodiscard]] bool may_be_uncaught(const ExitStatus& status);

/// What was printed behind an event, by the program itself as far as one can tell.
struct Sequel {
  std::vector<std::size_t> lines{};
  bool worked = false;   // lines of one shape show it: steps
  bool went_on = false;  // the program survived the event
};
/// Of an event in the lines from `begin` to before `end`. The program survived it if it works on,
/// if it reports another failure later, or if it handled it, as an exit code other than 1 shows,
/// and has more to say. It works on if it prints two lines of a shape that it printed before, or
/// three of a new one in which a number grows ("step 7"), unless they tell that it saves or tries
/// again. `status`: of a Python exception.
[[nodiscard]] Sequel sequel_of(const LineViews& lines, std::size_t begin, std::size_t end,
                               const std::optional<ExitStatus>& status);

}  // namespace ddprun

// Which lines of a worker's output can name the cause of its exit.
#include <algorithm>
#include <iterator>
#include <set>
#include <string>

#include "agent/report/quotation.hpp"
#include "agent/report/verdict/families.hpp"
#include "base/ending.hpp"
#include "base/message_line.hpp"
#include "base/printable.hpp"
#include "base/program_name.hpp"

namespace ddprun {

namespace {

// Without a traceback only the very last lines tell: earlier ones are often warnings.
constexpr std::size_t kLastLinesMax = 6;

bool contains(std::string_view line, std::string_view text) {
  return line.find(text) != std::string_view::npos;
}

std::string_view trimmed(std::string_view line) {
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  return line;
}

/// Whether the worker survived what the line at this offset says.
bool went_on_after(std::string_view tail, std::size_t offset) {
  const auto at =
      std::count(tail.begin(), tail.begin() + static_cast<std::ptrdiff_t>(offset), '\n');
  const auto line = static_cast<std::size_t>(at);
  return sequel_of(split_lines(tail), line, line + 1, {}).went_on;
}

/// What torchrun's table says of its root cause: "rank 1 (local_rank: 1), exitcode 3 (pid: 42)".
std::string root_cause_of_torchrun(std::string_view tail) {
  const auto heading = tail.rfind("Root Cause (first observed failure)");
  if (heading == std::string_view::npos || went_on_after(tail, heading)) return {};
  std::string text;
  for (const std::string_view field : {"rank", "exitcode"}) {
    const auto at = tail.find("\n  " + std::string(field) + " ", heading);
    if (at == std::string_view::npos) return {};
    const std::string_view line = tail.substr(at + 1, tail.find('\n', at + 1) - at - 1);
    const auto colon = line.find(": ");
    if (colon == std::string_view::npos) return {};
    text += (text.empty() ? "" : ", ") + std::string(field) + " " +
            std::string(trimmed(line.substr(colon + 2)));
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

/// Empty if there is none, or the worker went on after it.
std::string last_line_with(std::string_view tail, std::string_view text) {
  const auto at = tail.rfind(text);
  if (at == std::string_view::npos || went_on_after(tail, at)) return {};
  const auto before = tail.rfind('\n', at);
  const auto begin = before == std::string_view::npos ? 0 : before + 1;
  return quotable(tail.substr(begin, tail.find('\n', at) - begin));
}

/// The headline of a ddprun inside the worker.
bool is_headline(std::string_view line) {
  const std::size_t prefix = own_error_prefix(line);
  return prefix > 0 && line.substr(prefix).starts_with("error [W-");
}

bool is_of_import(std::string_view line) {
  return line.starts_with("ImportError: ") || line.starts_with("ModuleNotFoundError: ");
}

/// The file and the function of a frame: `File "train.py"...in main`.
std::string place_of(std::string_view frame) {
  const auto at = frame.find(", in ");
  if (at == std::string_view::npos) return {};
  return std::string(frame.substr(0, frame.find("\", line "))) + std::string(frame.substr(at));
}

bool is_frame(std::string_view line) {
  return trimmed(line).starts_with("File \"");
}

/// Of a chain whose last exception was raised while another one was handled.
struct Handling {
  std::size_t link = 0;        // between the two tracebacks; 0: it is no such chain
  bool in_handler = false;     // the handler itself raised it, and called nothing
  bool is_about_data = false;  // the program's own: it need not follow from the other
};

Handling handling_in(const LineViews& lines, const Traceback& traceback) {
  Handling found;
  for (std::size_t at = traceback.begin; at < traceback.exception; ++at) {
    if (contains(lines[at], "During handling of the above exception")) found.link = at;
  }
  if (found.link == 0) return found;
  // The function that handled it shows its traceback from itself down.
  std::size_t first = found.link;
  while (first > traceback.begin && !is_traceback_heading(lines[first])) --first;
  while (first < found.link && !is_frame(without_rank(lines[first]))) ++first;
  std::size_t last = traceback.exception - 1;
  while (last > found.link && !is_frame(without_rank(lines[last]))) --last;
  found.in_handler = place_of(without_rank(lines[first])) == place_of(without_rank(lines[last]));
  found.is_about_data =
      traceback.exception < lines.size() && is_about_data(without_rank(lines[traceback.exception]));
  return found;
}

/// The exception of a traceback, and what follows it: an exit code other than 1, or a failure that
/// was reported after it, shows that it was caught; one of a thread ended no process.
std::vector<TellingLine> of_traceback(const WorkerExit& exit, const LineViews& lines,
                                      const Traceback& traceback, const Sequel& sequel) {
  const bool of_file = exit.source == EvidenceSource::kErrorFile;
  const bool is_last = of_file || sequel.lines.empty();
  const bool is_certain = is_last || (may_be_uncaught(exit.status) && !traceback.is_of_thread &&
                                      !reports_failure(lines[sequel.lines.back()]));
  std::vector<TellingLine> telling;
  if (!is_certain) telling.push_back({without_rank(lines[sequel.lines.back()]), true});
  const Handling handling = handling_in(lines, traceback);
  for (std::size_t at = traceback.begin; at < lines.size(); ++at) {
    const std::string_view line = without_gutter(without_rank(lines[at]));
    const bool tells = !is_noise(line) && !is_traceback_heading(line);
    if (!tells) continue;
    // A program that does without a module, or tries another way, fails for its own reasons later.
    const bool was_handled = at < handling.link && (handling.is_about_data ||
                                                    (is_of_import(line) && !handling.in_handler));
    telling.push_back({line, is_certain && !was_handled});
  }
  return telling;
}

/// Of the lines from `from` to before `end`, the last one first.
std::vector<TellingLine> of_last_lines(const LineViews& lines, std::size_t from, std::size_t end) {
  std::vector<TellingLine> telling;
  std::multiset<std::string> shapes;
  for (const std::string_view line : lines) shapes.insert(shape_of(line));
  std::string_view last;  // the first word of the last statement
  std::size_t statements = 0;
  for (std::size_t at = end; at > from && statements < kLastLinesMax; --at) {
    const std::string_view line = without_rank(lines[at - 1]);
    if (line.empty() || (contains(line, "Warning: ") && is_noise(line))) continue;
    const std::string_view word = line.substr(0, line.find(' '));
    telling.push_back({line, statements == 0 || word == last});
    if (is_noise(line)) continue;
    if (statements++ == 0) last = word;
    const std::string shape = shape_of(line);
    const bool is_step = contains(shape, "#") && shapes.count(shape) > 1;
    if (is_step || reports_failure(line)) break;
  }
  return telling;
}

}  // namespace

std::vector<TellingLine> telling_lines(const WorkerExit& exit) {
  const LineViews lines = own_account(views_of(exit.lines));
  std::vector<TellingLine> telling;
  const auto traceback = last_traceback(lines);
  Sequel sequel;
  if (traceback) sequel = sequel_of(lines, traceback->begin, traceback->end, exit.status);
  if (traceback && !sequel.went_on) {
    telling = of_traceback(exit, lines, *traceback, sequel);
  } else {
    const auto fault = std::find_if(lines.begin(), lines.end(), [](std::string_view line) {
      return line.starts_with(kFaultReport);
    });
    const auto end = static_cast<std::size_t>(std::distance(lines.begin(), fault));
    const std::size_t from = traceback ? traceback->end : 0;
    telling = of_last_lines(lines, from, end == 0 || end < from ? lines.size() : end);
  }
  for (std::size_t at = 0; at < lines.size(); ++at) {
    const std::string_view line = without_rank(lines[at]);
    const bool crashed = exit.status.by_signal() && line.starts_with("  what():  ");
    const bool nested = is_headline(line) && !sequel_of(lines, at, at + 1, {}).went_on;
    if (crashed || nested) telling.push_back({line, true});
  }
  if (!exit.evidence.telling_line.empty()) telling.push_back({exit.evidence.telling_line, true});
  return telling;
}

bool tells(const WorkerExit& exit, std::string_view text) {
  const std::vector<TellingLine> telling = telling_lines(exit);
  return std::any_of(telling.begin(), telling.end(), [text](const TellingLine& line) {
    return line.is_certain && contains(line.text, text);
  });
}

bool quotes(const WorkerExit& exit, std::string_view text) {
  return std::any_of(exit.lines.begin(), exit.lines.end(),
                     [text](const std::string& line) { return contains(line, text); });
}

std::string find_telling_line(const std::string& tail, const std::vector<std::string>& quoted) {
  const auto is_quoted = [&quoted](const std::string& line) {
    return std::find(quoted.begin(), quoted.end(), line) != quoted.end();
  };
  if (const std::string rank = root_cause_of_torchrun(tail); !rank.empty()) {
    return "torchrun: " + quotable(rank);
  }
  for (const std::string_view name : kProgramNames) {
    const std::string inner = last_line_with(tail, std::string(name) + ": error [W-");
    if (!inner.empty()) return is_quoted(inner) ? "" : inner;
  }
  const bool about_nccl = std::any_of(quoted.begin(), quoted.end(), [](const std::string& line) {
    return contains(line, "NCCL") || contains(line, "nccl");
  });
  const std::string warning = about_nccl ? last_line_with(tail, "NCCL WARN ") : "";
  return is_quoted(warning) ? "" : warning;
}

}  // namespace ddprun

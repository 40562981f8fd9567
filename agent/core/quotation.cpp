#include "agent/core/quotation.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "agent/core/limits.hpp"
#include "base/count_text.hpp"
#include "base/message_line.hpp"
#include "base/printable.hpp"

namespace ddprun {

namespace {

// Native frames of one error: the first ones say where it came from.
constexpr std::size_t kNativeFramesMax = 2;
// A report of the fault handler follows that of the C++ runtime, if that has one, so closely.
constexpr std::size_t kFaultFollowsMax = 30;

bool contains_text(std::string_view line, std::string_view text) {
  return line.find(text) != std::string_view::npos;
}

std::string left_out_text(std::size_t count, const char* what) {
  return "... " + count_text(static_cast<long long>(count), what) + " left out ...";
}

/// Adds a line, but of the frames that libraries print in C++ only the first ones.
class FrameFolder {
 public:
  explicit FrameFolder(std::vector<std::string>& lines) : lines_(lines) {}
  void add(std::string line) {
    if (contains_text(line.substr(0, 20), "frame #")) {
      if (++frames_ > kNativeFramesMax) return;
    } else {
      end_run();
    }
    lines_.push_back(std::move(line));
  }
  void end_run() {
    if (frames_ > kNativeFramesMax) {
      lines_.push_back(left_out_text(frames_ - kNativeFramesMax, "native frame"));
    }
    frames_ = 0;
  }

 private:
  std::vector<std::string>& lines_;
  std::size_t frames_ = 0;
};

std::vector<std::string> lines_of(std::string_view tail) {
  std::vector<std::string> lines;
  FrameFolder folder(lines);
  while (!tail.empty()) {
    const auto end = std::min(tail.find('\n'), tail.size());
    folder.add(quotable(tail.substr(0, end)));
    tail.remove_prefix(std::min(end + 1, tail.size()));
  }
  folder.end_run();
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

bool links_tracebacks(const std::string& line) {
  constexpr std::string_view kContext = "During handling of the above exception, another exception";
  constexpr std::string_view kCause = "The above exception was the direct cause of the following";
  return line.find(kContext) != std::string::npos || line.find(kCause) != std::string::npos;
}

/// Where the last heading before line `end` stands; `end` if there is none.
std::size_t heading_before(const std::vector<std::string>& lines, std::size_t end) {
  for (std::size_t at = end; at > 0; --at) {
    if (is_traceback_heading(lines[at - 1])) return at - 1;
  }
  return end;
}

bool continues_chain(const std::vector<std::string>& lines, std::size_t heading) {
  const std::size_t from = heading - std::min<std::size_t>(heading, 3);  // between blank lines
  return std::any_of(lines.begin() + static_cast<std::ptrdiff_t>(from),
                     lines.begin() + static_cast<std::ptrdiff_t>(heading), links_tracebacks);
}

/// Tracebacks that Python printed one behind the other, because each exception was raised while the
/// one before it was handled. The first is the root cause.
struct Chain {
  std::size_t begin;      // the heading of the first traceback
  std::size_t first_end;  // behind the first one, and behind what links it to the next
};

std::optional<Chain> last_chain(const std::vector<std::string>& lines) {
  Chain chain{heading_before(lines, lines.size()), lines.size()};
  if (chain.begin == lines.size()) return std::nullopt;
  while (continues_chain(lines, chain.begin)) {
    const std::size_t earlier = heading_before(lines, chain.begin);
    if (earlier == chain.begin) break;  // its heading was lost with older output
    chain = {earlier, chain.begin};
  }
  return chain;
}

/// Of a chain that is too long: its heading, the end of its first traceback, which has the root
/// cause, and the end of its last one. Where lines are missing between them it says how many.
std::vector<std::string> shortened(const std::vector<std::string>& lines, std::size_t first_end) {
  const std::size_t of_first = first_end < lines.size() ? kRootCauseLinesMax : 0;
  const std::size_t of_last = kReportLinesMax - of_first - 3;  // a heading, two lines for gaps
  std::vector<std::string> text;
  std::size_t left_out = 0;
  for (std::size_t at = 0; at < lines.size(); ++at) {
    const bool ends_first = at < first_end && at + of_first >= first_end;
    if (at > 0 && !ends_first && at + of_last < lines.size()) {
      ++left_out;
      continue;
    }
    if (left_out > 0) text.push_back(left_out_text(left_out, "line"));
    left_out = 0;
    text.push_back(lines[at]);
  }
  return text;
}

/// What begins a report that tells most at its beginning: of Python's fault handler, of the C++
/// runtime, of a launcher inside the worker.
bool begins_report(std::string_view line) {
  constexpr std::array<std::string_view, 3> kBeginnings = {
      "Fatal Python error: ", "terminate called", "Root Cause (first observed"};
  if (own_error_prefix(line) > 0) return true;
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [line](std::string_view text) { return line.substr(0, text.size()) == text; });
}

/// Where the last such report begins; the number of lines if there is none.
std::size_t last_report(const std::vector<std::string>& lines) {
  std::size_t begin = lines.size();
  while (begin > 0 && !begins_report(lines[begin - 1])) --begin;
  if (begin == 0) return lines.size();
  --begin;
  const std::size_t from = begin - std::min(begin, kFaultFollowsMax);
  for (std::size_t at = from; at < begin; ++at) {
    if (begins_report(lines[at]) && contains_text(lines[begin], "Fatal Python error")) return at;
  }
  return begin;
}

/// Whether the report that begins there is of a crash of an interpreter that had ended all Python
/// code: exit handlers and threads of libraries do that after an exception.
bool is_of_shutdown(const std::vector<std::string>& lines, std::size_t report) {
  const auto has = [&](std::string_view text) {
    return std::any_of(lines.begin() + static_cast<std::ptrdiff_t>(report), lines.end(),
                       [text](const std::string& line) { return contains_text(line, text); });
  };
  return has("Fatal Python error: ") && !has("  File \"") &&
         (has("<no Python frame>") || has("Python runtime state: finalizing"));
}

}  // namespace

bool is_traceback_heading(std::string_view line) {
  const auto at = line.find("Traceback (most recent call last)");
  if (at == std::string_view::npos) return false;
  return !contains_text(line.substr(0, at), "| ");  // quoted by a launcher inside the worker
}

std::string quotable(std::string_view line) {
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (const auto bar = line.rfind('\r'); bar != std::string_view::npos) line.remove_prefix(bar + 1);
  if (line.size() <= kReportLineBytesMax) return printable(line);
  constexpr std::size_t kBegin = kReportLineBytesMax - kReportLineEndBytes;
  return printable(line.substr(0, kBegin)) + "..." +
         printable(line.substr(line.size() - kReportLineEndBytes));
}

std::vector<std::string> quotable_lines(std::string_view tail) {
  std::vector<std::string> lines = lines_of(tail);
  const auto chain = last_chain(lines);
  const std::size_t report = last_report(lines);
  const auto drop_first = [&lines](std::size_t count) {
    lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(count));
  };
  if (chain && chain->begin < report && report < lines.size() && is_of_shutdown(lines, report)) {
    lines.resize(report + 1);  // the exception is the cause, the crash its consequence
  } else if (report < lines.size() && (!chain || chain->begin < report)) {
    drop_first(report);
    return first_lines(std::move(lines), kReportLinesMax);
  }
  if (chain) drop_first(chain->begin);
  if (lines.size() <= kReportLinesMax) return lines;
  if (chain) return shortened(lines, chain->first_end - chain->begin);
  drop_first(lines.size() - kReportLinesMax);
  return lines;
}

std::string exception_of(const std::vector<std::string>& lines) {
  const bool one_traceback = heading_before(lines, lines.size()) == 0 && !lines.empty();
  if (!one_traceback) return {};
  const std::string prefix = lines[0].substr(0, lines[0].find("Traceback"));
  for (std::size_t at = 1; at < lines.size(); ++at) {  // frames and their gaps are indented
    std::string_view line = lines[at];
    if (line.starts_with(prefix)) line.remove_prefix(prefix.size());
    if (!line.empty() && line.front() != ' ' && !line.starts_with("... ")) return lines[at];
  }
  return {};
}

std::vector<std::string> first_lines(std::vector<std::string> lines, std::size_t lines_max) {
  if (lines.size() <= lines_max) return lines;
  const std::size_t left_out = lines.size() - lines_max + 1;
  lines.resize(lines_max - 1);
  lines.push_back(left_out_text(left_out, "line"));
  return lines;
}

std::vector<std::string> fitted(const std::vector<std::string>& lines, std::size_t lines_max) {
  if (lines.size() <= lines_max || lines.empty()) return lines;
  if (begins_report(lines.front())) return first_lines(lines, lines_max);
  const bool traceback = is_traceback_heading(lines.front());
  const std::size_t head = traceback ? std::min(kRootCauseLinesMax - 1, lines_max / 2) : 0;
  const std::size_t end = lines_max - head - (traceback ? 1 : 0);
  std::vector<std::string> text(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(head));
  if (traceback) text.push_back(left_out_text(lines.size() - head - end, "line"));
  text.insert(text.end(), lines.end() - static_cast<std::ptrdiff_t>(end), lines.end());
  return text;
}

}  // namespace ddprun

#include "agent/report/quotation.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "base/ending.hpp"
#include "base/format.hpp"
#include "base/limits.hpp"
#include "base/message_line.hpp"
#include "base/printable.hpp"
#include "base/rank_facts.hpp"

namespace ddprun {

namespace {

// Bytes of a line that a report quotes; of a longer one the middle is "...".
constexpr std::size_t kReportLineBytesMax = 400;
constexpr std::size_t kReportLineEndBytes = 150;  // of these, from its end
// Of these, lines of the traceback that was the root cause, where others were raised because of it.
constexpr std::size_t kRootCauseLinesMax = 8;
static_assert(kRootCauseLinesMax + 3 < kReportLinesMax, "the end of the last traceback has room");

// A report of the fault handler follows that of the C++ runtime, if that has one, so closely.
constexpr std::size_t kFaultFollowsMax = 30;

std::string left_out_text(std::size_t count, const char* what) {
  return "... " + count_text(static_cast<long long>(count), what) + " left out ...";
}

using Lines = std::vector<std::string>;

// Of a run of lines of one form the first and the last so many stay: a stack trace tells most at
// its beginning, a list of steps at its end.
constexpr std::size_t kRunEnds = 2;
// What stands before the report of Python's fault handler says why it was called.
constexpr std::size_t kBeforeFaultMax = 8;
// Lines behind an exception, where lines have to be left out: its beginning, a gap, its end.
constexpr std::size_t kSequelBegin = 3;
constexpr std::size_t kSequelEnd = 2;
constexpr std::string_view kNativeFrame = "frame #";
constexpr std::string_view kDetail = "\t";

Lines part(const Lines& lines, std::size_t from, std::size_t to) {
  return {lines.begin() + static_cast<std::ptrdiff_t>(from),
          lines.begin() + static_cast<std::ptrdiff_t>(to)};
}

void append(Lines& lines, const Lines& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

/// The number of a line that says how many lines were left out before; none: it is another line.
std::optional<std::size_t> left_out_before(std::string_view line) {
  std::size_t count = 0;
  if (!line.starts_with("... ") || !line.ends_with(" left out ...")) return std::nullopt;
  std::from_chars(line.data() + 4, line.data() + line.size(), count);
  return count;
}

/// The first `lines_max` lines, the last of which says how many are left out.
std::vector<std::string> first_lines(std::vector<std::string> lines, std::size_t lines_max) {
  if (lines.size() <= lines_max) return lines;
  std::size_t left_out = 0;
  for (std::size_t at = lines_max - 1; at < lines.size(); ++at) {
    left_out += left_out_before(lines[at]).value_or(1);
  }
  lines.resize(lines_max - 1);
  lines.push_back(left_out_text(left_out, "line"));
  return lines;
}

enum class Fold { kNativeFrames, kAllRuns };

/// The form of each line within a run. Indented lines are details of what stands above them.
Lines forms_of(const Lines& lines, Fold fold) {
  Lines forms;
  for (const std::string& line : lines) {
    std::string form;
    if (fold == Fold::kAllRuns && left_out_before(line) && !forms.empty()) {
      form = forms.back();
    } else if (contains(line.substr(0, 20), kNativeFrame)) {
      form = kNativeFrame;
    } else if (fold == Fold::kAllRuns && !line.empty()) {
      form = is_indented(line) ? kDetail : shape_of(line);
    }
    forms.push_back(std::move(form));
  }
  return forms;
}

/// The end of the run that begins at `from`: lines of one form, or in turns a line and one that is
/// indented below it.
std::size_t end_of_run(const Lines& forms, std::size_t from, std::size_t period) {
  const auto alike = [&](std::size_t at) {
    if (period == 1) return forms[at] == forms[from];
    return (forms[at] == kDetail) == ((at - from) % 2 == 1);
  };
  std::size_t end = from;
  while (end < forms.size() && !forms[end].empty() && alike(end)) ++end;
  return end - (end - from) % period;
}

/// Leaves out the middle of long runs, and of native frames all behind the first ones.
Lines folded(const Lines& lines, Fold fold, std::size_t ends = kRunEnds) {
  const Lines forms = forms_of(lines, fold);
  Lines text;
  for (std::size_t at = 0; at < lines.size();) {
    std::size_t end = end_of_run(forms, at, 1);
    const std::size_t turns = end_of_run(forms, at, 2);
    const std::size_t period = end <= at + 1 && turns > end ? 2 : 1;
    if (period == 2) end = turns;
    const std::size_t first = ends * period;
    const std::size_t last = forms[at] == kNativeFrame ? 0 : first;
    if (end < at + first + last + 2) {
      text.push_back(lines[at++]);
      continue;
    }
    append(text, part(lines, at, at + first));
    std::size_t left_out = 0;
    for (std::size_t line = at + first; line < end - last; ++line) {
      left_out += left_out_before(lines[line]).value_or(1);
    }
    text.push_back(left_out_text(left_out, last == 0 ? "native frame" : "line"));
    append(text, part(lines, end - last, end));
    at = end;
  }
  return text;
}

Lines lines_of(std::string_view tail) {
  Lines lines;
  while (!tail.empty()) {
    const auto end = std::min(tail.find('\n'), tail.size());
    lines.push_back(quotable(tail.substr(0, end)));
    tail.remove_prefix(std::min(end + 1, tail.size()));
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return folded(lines, Fold::kNativeFrames);
}

/// Of a chain that is too long: its heading, the end of its first traceback, which has the root
/// cause, and the end of its last one. Where lines are missing between them it says how many.
Lines shortened_chain(const Lines& lines, std::size_t first_end, std::size_t lines_max) {
  const std::size_t of_first =
      first_end < lines.size() ? std::min(kRootCauseLinesMax, lines_max / 2 - 2) : 0;
  const std::size_t of_last = lines_max - of_first - 3;  // a heading, two lines for gaps
  Lines text;
  std::size_t left_out = 0;
  for (std::size_t at = 0; at < lines.size(); ++at) {
    const bool ends_first = at < first_end && at + of_first >= first_end;
    if (at > 0 && !ends_first && at + of_last < lines.size()) {
      left_out += left_out_before(lines[at]).value_or(1);
      continue;
    }
    if (left_out > 0) text.push_back(left_out_text(left_out, "line"));
    left_out = 0;
    text.push_back(lines[at]);
  }
  return text;
}

/// The text keeps the beginning and the end of what follows an exception.
Lines shortened_sequel(const Lines& sequel) {
  if (sequel.size() <= kSequelBegin + kSequelEnd + 1) return sequel;
  const Lines end = part(sequel, sequel.size() - kSequelEnd, sequel.size());
  Lines text = first_lines(part(sequel, 0, sequel.size() - kSequelEnd), kSequelBegin + 1);
  append(text, end);
  return text;
}

/// The same with what follows the exception, of lines that begin with the traceback.
Lines shortened(const Lines& lines, const Traceback& traceback, std::size_t lines_max) {
  const Lines sequel = shortened_sequel(part(lines, traceback.end, lines.size()));
  Lines chain = part(lines, 0, traceback.end);
  const std::size_t room = lines_max - sequel.size();
  if (chain.size() > room) chain = shortened_chain(chain, traceback.first_end, room);
  append(chain, sequel);
  return chain;
}

/// The last lines, of which runs are shortened, so that what stands before a stack trace is shown.
Lines last_lines(const Lines& lines, std::size_t lines_max) {
  Lines text = lines;
  for (std::size_t ends = kRunEnds; ends > 0 && text.size() > lines_max; --ends) {
    text = folded(text, Fold::kAllRuns, ends);
  }
  return part(text, text.size() - std::min(text.size(), lines_max), text.size());
}

/// What begins a report that tells most at its beginning: of Python's fault handler, of the C++
/// runtime, of a launcher inside the worker.
bool begins_report(std::string_view line) {
  constexpr std::array<std::string_view, 3> kBeginnings = {kFaultReport, "terminate called",
                                                           "Root Cause (first observed"};
  if (own_error_prefix(line) > 0) return true;
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [line](std::string_view text) { return line.substr(0, text.size()) == text; });
}

/// Where the last such report begins; the number of lines if there is none.
std::size_t last_report(const Lines& lines) {
  std::size_t begin = lines.size();
  while (begin > 0 && !begins_report(lines[begin - 1])) --begin;
  if (begin == 0) return lines.size();
  --begin;
  const std::size_t from = begin - std::min(begin, kFaultFollowsMax);
  for (std::size_t at = from; at < begin; ++at) {
    if (begins_report(lines[at]) && lines[begin].starts_with(kFaultReport)) return at;
  }
  return begin;
}

/// What begins a long report that ends with details: of a sanitizer, of a panic in Rust.
bool begins_details(std::string_view line) {
  return (line.starts_with("==") && contains(line, "Sanitizer: ")) ||
         contains(line, " panicked at ");
}

/// The report of the fault handler is an appendix to what stands before it.
Lines with_appendix(const Lines& lines, std::size_t fault, std::size_t lines_max) {
  Lines text = part(lines, 0, fault);
  while (!text.empty() && text.back().empty()) text.pop_back();
  const std::size_t room = std::min(kBeforeFaultMax, lines_max / 2);
  const bool is_report = !text.empty() && begins_report(text.front());
  text = is_report ? first_lines(text, room) : last_lines(text, room);
  append(text, first_lines(part(lines, fault, lines.size()), lines_max - text.size()));
  return text;
}

/// Where the report of the fault handler begins; the number of lines if there is none.
std::size_t fault_in(const Lines& lines) {
  const auto fault = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.starts_with(kFaultReport);
  });
  return static_cast<std::size_t>(std::distance(lines.begin(), fault));
}

Lines from_details(const Lines& lines) {
  const auto last = std::find_if(lines.rbegin(), lines.rend(),
                                 [](const std::string& line) { return begins_details(line); });
  return {last == lines.rend() ? lines.begin() : std::prev(last.base()), lines.end()};
}

/// From a traceback on, without numbered lines behind it of a form that was printed before: of
/// threads that ran on while Python shut down.
Lines without_repetitions(const Lines& lines, const Traceback& traceback) {
  const std::set<std::string> before = shapes_before(views_of(lines), traceback.begin);
  Lines kept = part(lines, traceback.begin, traceback.end);
  for (std::size_t at = traceback.end; at < lines.size(); ++at) {
    const std::string shape = shape_of(lines[at]);
    const bool is_numbered = shape != lines[at];
    if (!is_numbered || !before.contains(shape)) kept.push_back(lines[at]);
  }
  return kept;
}

/// Whether the report that begins there is of a crash of an interpreter that had ended all Python
/// code: exit handlers and threads of libraries do that after an exception. The fault handler would
/// say of another one where Python was.
bool is_of_shutdown(const Lines& lines, const Traceback& before, std::size_t report) {
  const auto has = [&](std::string_view text) {
    return std::any_of(lines.begin() + static_cast<std::ptrdiff_t>(report), lines.end(),
                       [text](const std::string& line) { return contains(line, text); });
  };
  if (has("Fatal Python error: ")) {
    return !has("  File \"") &&
           (has("<no Python frame>") || has("Python runtime state: finalizing"));
  }
  LineViews between = own_account(views_of(lines));
  between.resize(report);
  return lines[report].starts_with("terminate called") && !before.is_aside() &&
         sequel_of(between, before.begin, before.end, {}).lines.empty();
}

}  // namespace

std::string quotable(std::string_view line) {
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (const auto bar = line.rfind('\r'); bar != std::string_view::npos) line.remove_prefix(bar + 1);
  if (line.size() <= kReportLineBytesMax) return printable(line);
  constexpr std::size_t kBegin = kReportLineBytesMax - kReportLineEndBytes;
  return printable(line.substr(0, kBegin)) + "..." +
         printable(line.substr(line.size() - kReportLineEndBytes));
}

std::vector<std::string> quotable_lines(std::string_view tail,
                                        const std::optional<ExitStatus>& status) {
  Lines lines = lines_of(tail);
  const LineViews views = own_account(views_of(lines));
  auto chain = last_traceback(views);
  if (chain && sequel_of(views, chain->begin, chain->end, status).went_on) chain.reset();
  std::size_t report = last_report(lines);
  if (report < lines.size() && sequel_of(views, report, report + 1, {}).went_on) {
    report = lines.size();
  }
  if (chain && chain->begin < report && report < lines.size() &&
      is_of_shutdown(lines, *chain, report)) {
    lines.resize(report + 1);  // the exception is the cause, the crash its consequence
  } else if (report < lines.size() && (!chain || chain->begin < report)) {
    const bool is_appendix = lines[report].starts_with(kFaultReport);
    if (is_appendix) return with_appendix(lines, report, kReportLinesMax);
    return fitted(part(lines, report, lines.size()), kReportLinesMax);
  }
  if (chain) return fitted(without_repetitions(lines, *chain), kReportLinesMax);
  if (folded(lines, Fold::kAllRuns, 1).size() > kReportLinesMax) lines = from_details(lines);
  return fitted(lines, kReportLinesMax);
}

std::vector<std::string> exception_of(const std::vector<std::string>& lines) {
  const LineViews views = own_account(views_of(lines));
  const auto traceback = last_traceback(views);
  const bool is_chain = std::any_of(views.begin(), views.end(), links_tracebacks);
  if (!traceback || traceback->begin != 0 || is_chain) return {};
  if (traceback->exception == traceback->end) return {};
  const Sequel sequel = sequel_of(views, 0, traceback->end, {});
  if (!sequel.lines.empty() && reports_failure(lines[sequel.lines.back()])) return {};
  Lines said{lines[traceback->exception]};
  Lines after;
  std::size_t next = 0;  // of the sequel
  bool is_kept = true;   // the line before
  for (std::size_t at = traceback->end; at < lines.size(); ++at) {
    const bool is_sequel = next < sequel.lines.size() && sequel.lines[next] == at;
    if (is_sequel) ++next;
    const bool is_detail = is_kept && (is_indented(lines[at]) || left_out_before(lines[at]));
    is_kept = is_sequel || is_detail;
    if (is_kept) after.push_back(lines[at]);
  }
  append(said, shortened_sequel(after));
  return said;
}

namespace {

enum class Raised { kByProcess, kInThread };

std::string last_exception_of(Raised where, std::string_view tail) {
  const Lines lines = lines_of(tail);
  const LineViews views = own_account(views_of(lines));
  const auto traceback = last_traceback(views);
  if (!traceback || traceback->exception == traceback->end) return {};
  if (traceback->is_of_thread != (where == Raised::kInThread)) return {};
  if (traceback->begin > 0 && is_log_record(views[traceback->begin - 1])) return {};
  const Sequel sequel = sequel_of(views, traceback->begin, traceback->end, {});
  if (!sequel.lines.empty()) return {};
  return clean_utf8(lines[traceback->exception], kReportLineBytesMax);
}

}  // namespace

std::string last_exception(std::string_view tail) {
  return last_exception_of(Raised::kByProcess, tail);
}

std::string last_exception_in_thread(std::string_view tail) {
  const std::string exception = last_exception_of(Raised::kInThread, tail);
  return exception.empty() ? "" : std::string(kInThread) + exception;
}

std::vector<std::string> fitted(const std::vector<std::string>& lines, std::size_t lines_max) {
  if (lines.size() <= lines_max) return lines;
  const auto traceback = last_traceback(views_of(lines));
  if (traceback && traceback->begin == 0) return shortened(lines, *traceback, lines_max);
  const std::size_t fault = fault_in(lines);
  if (fault > 0 && fault < lines.size()) return with_appendix(lines, fault, lines_max);
  if (begins_report(lines.front())) return first_lines(lines, lines_max);
  if (!begins_details(lines.front())) return last_lines(lines, lines_max);
  return first_lines(folded(lines, Fold::kAllRuns), lines_max);
}

}  // namespace ddprun

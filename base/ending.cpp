#include "base/ending.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <map>

namespace ddprun {

namespace {

// What introduces a traceback stands at most so many lines before its heading.
constexpr std::size_t kIntroductionLines = 3;

bool has_text(std::string_view line, std::string_view text) {
  return line.find(text) != std::string_view::npos;
}

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

bool is_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

template <std::size_t N>
bool starts_with_any(std::string_view line, const std::array<std::string_view, N>& texts) {
  return std::any_of(texts.begin(), texts.end(),
                     [line](std::string_view text) { return line.starts_with(text); });
}

template <std::size_t N>
bool has_any_text(std::string_view line, const std::array<std::string_view, N>& texts) {
  return std::any_of(texts.begin(), texts.end(),
                     [line](std::string_view text) { return has_text(line, text); });
}

/// Whether one of the lines shortly before `at` has one of these texts.
template <std::size_t N>
bool introduced_by(const LineViews& lines, std::size_t at,
                   const std::array<std::string_view, N>& texts) {
  const std::size_t from = at - std::min(at, kIntroductionLines);
  for (std::size_t line = from; line < at; ++line) {
    if (has_any_text(lines[line], texts)) return true;
  }
  return false;
}

constexpr std::string_view kInHandler = "During handling of the above exception, another exception";
// PyTorch shows the exception of a loader's process within the message of its own one.
constexpr std::string_view kOriginal = "Original Traceback (most recent call last)";
constexpr std::string_view kDirectCause =
    "The above exception was the direct cause of the following";
// torch.multiprocessing.spawn shows that of a process in the same way, with a heading.
constexpr std::string_view kOfSpawned = " terminated with the following error:";
constexpr std::array<std::string_view, 4> kLinks = {kInHandler, kDirectCause, kOriginal,
                                                    kOfSpawned};
// What frames that are drawn begin with, in UTF-8: U+2500 to U+257F.
constexpr std::array<std::string_view, 2> kBoxes = {"\xE2\x94", "\xE2\x95"};
// By these words Python says that it continues.
constexpr std::string_view kLoggingError = "--- Logging error ---";
constexpr std::array<std::string_view, 4> kIgnored = {"Exception ignored ", kLoggingError,
                                                      "Error in atexit._run_exitfuncs",
                                                      "exception was never retrieved"};

// An exception that ended a thread of Python ended no process: the main thread ran on, or had
// ended.
constexpr std::array<std::string_view, 1> kOfThread = {"Exception in thread "};

/// "Process SpawnProcess-1:", above the traceback of a process of Python's multiprocessing.
bool is_of_child(std::string_view line) {
  line = without_rank(line);
  return line.starts_with("Process ") && line.ends_with(":") && line.find('-') != line.npos;
}

/// Where the last heading before line `end` stands; `end` if there is none.
std::size_t heading_before(const LineViews& lines, std::size_t end) {
  for (std::size_t at = end; at > 0; --at) {
    if (!is_traceback_heading(lines[at - 1])) continue;
    if (!introduced_by(lines, at - 1, kIgnored)) return at - 1;
  }
  return end;
}

/// In an exception group each line is indented, but for those that tell of a gap.
std::size_t end_of_group(const LineViews& lines, std::size_t heading) {
  std::size_t end = heading + 1;
  while (end < lines.size() &&
         (is_indented(without_rank(lines[end])) || lines[end].starts_with("... "))) {
    ++end;
  }
  return end;
}

/// Of a chain whose later headings are left out, the last one.
std::size_t exception_after(const LineViews& lines, std::size_t heading) {
  std::size_t found = lines.size();
  for (std::size_t at = heading + 1; at < lines.size(); ++at) {
    if (links_tracebacks(lines[at])) found = lines.size();
    if (found < at && is_traceback_heading(lines[at])) break;
    if (found == lines.size() && is_exception(without_rank(lines[at]))) found = at;
  }
  return found;
}

/// A word of digits, or of hexadecimal ones.
bool is_number(std::string_view word) {
  if (word.starts_with("0x")) return true;
  return std::any_of(word.begin(), word.end(), is_digit) &&
         std::all_of(word.begin(), word.end(),
                     [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; });
}

bool is_numbered(const std::string& shape) {
  const bool has_word = std::any_of(shape.begin(), shape.end(), [](char c) {
    return std::isalpha(static_cast<unsigned char>(c)) != 0;
  });
  return has_word && has_text(shape, "#");
}

/// "[E1122 10:51:07.1 x.cpp:3]", as PyTorch's own log has it.
bool is_of_native_log(std::string_view line) {
  return line.size() > 2 && line.front() == '[' && has_text("IWEFC", line.substr(1, 1)) &&
         (is_digit(line[2]) || line[2] == ' ');
}

}  // namespace

LineViews views_of(const std::vector<std::string>& lines) {
  return {lines.begin(), lines.end()};
}

LineViews split_lines(std::string_view text) {
  LineViews lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string_view without_rank(std::string_view line) {
  constexpr std::string_view kBegin = "[rank";
  const auto end = line.find("]: ");
  if (!line.starts_with(kBegin) || end == std::string_view::npos) return line;
  return line.substr(end + 3);
}

std::string_view without_gutter(std::string_view line) {
  const auto bar = line.find_first_not_of(' ');
  const bool found = bar != std::string_view::npos && line.substr(bar).starts_with("| ");
  return found ? line.substr(bar + 2) : line;
}

bool is_indented(std::string_view line) {
  if (line.empty()) return false;
  return line.front() == ' ' || line.front() == '\t' || starts_with_any(line, kBoxes);
}

bool links_tracebacks(std::string_view line) {
  return has_any_text(line, kLinks);
}

bool is_traceback_heading(std::string_view line) {
  const auto at = line.find("Traceback (most recent call last)");
  if (at == std::string_view::npos || has_text(line, kOriginal)) return false;
  return !has_text(line.substr(0, at), "| ");  // a member of a group, or quoted by a launcher
}

bool is_exception(std::string_view line) {
  const std::string_view name = line.substr(0, line.find(':'));
  if (name.empty() || is_digit(name.front())) return false;
  const bool sound = std::all_of(name.begin(), name.end(), [](char c) {
    return is_of_word(c) || c == '.' || c == '<' || c == '>';  // "main.<locals>.Failure"
  });
  const bool complete = name.size() == line.size() || name.size() + 1 == line.size();
  return sound && (complete || line[name.size() + 1] == ' ');
}

std::string shape_of(std::string_view line) {
  std::string shape;
  while (!line.empty()) {
    const auto end = std::find_if_not(line.begin(), line.end(), is_of_word);
    const auto size = static_cast<std::size_t>(std::distance(line.begin(), end));
    const std::string_view word = line.substr(0, std::max<std::size_t>(size, 1));
    line.remove_prefix(word.size());
    if (is_number(word)) {
      shape += '#';
      continue;
    }
    for (const char c : word) {
      if (!is_digit(c)) shape += c;
      if (is_digit(c) && (shape.empty() || shape.back() != '#')) shape += '#';
    }
  }
  return shape;
}

std::set<std::string> shapes_before(const LineViews& lines, std::size_t end) {
  std::set<std::string> shapes;
  for (std::size_t at = 0; at < end; ++at) shapes.insert(shape_of(lines[at]));
  return shapes;
}

bool is_noise(std::string_view line) {
  constexpr std::array<std::string_view, 11> kBeginnings = {
      "... ",
      "frame #",
      "wandb: ",
      "Exception raised from ",
      "terminate called",
      "Fatal Python",
      "Exception ignored",
      "Current thread 0x",
      "Extension modules: ",
      "Thread 0x",
      "Set the environment variable HYDRA_FULL_ERROR"};
  if (line.starts_with("[rank") && has_text(line, "]:[")) line.remove_prefix(line.find("]:[") + 2);
  line = without_rank(line);
  if (line.empty() || is_indented(line) || is_of_native_log(line)) return true;
  const bool speaks = std::any_of(line.begin(), line.end(), is_of_word);
  if (!speaks || starts_with_any(line, kBeginnings)) return true;
  if (has_text(line, "%|")) return true;  // a bar of tqdm, which is drawn again as Python exits
  return (has_text(line, "Warning: ") && has_text(line, ".py:")) || has_text(line, " NCCL INFO ");
}

bool is_log_record(std::string_view line) {
  constexpr std::array<std::string_view, 4> kLevels = {"WARNING", "ERROR", "CRITICAL", "WARN"};
  return std::any_of(kLevels.begin(), kLevels.end(), [&](std::string_view level) {
    const auto at = line.find(level);
    if (at == std::string_view::npos) return false;
    const std::string_view behind = line.substr(at + level.size());
    const bool begins =
        at == 0 || std::string_view(" [|:(-").find(line[at - 1]) != std::string_view::npos;
    return begins && !behind.empty() &&
           std::string_view(" ]|:)-").find(behind[0]) != std::string_view::npos;
  });
}

bool reports_failure(std::string_view line) {
  constexpr std::array<std::string_view, 3> kWords = {"FATAL", "CRITICAL", "ERROR"};
  line = without_rank(line);
  std::string begin(line.substr(0, 8));
  for (char& c : begin) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
    if (begin.starts_with(word) && (line.size() == word.size() || !is_of_word(line[word.size()]))) {
      return true;
    }
    const auto at = line.find(word);  // "2026-01-02 03:04:05 | ERROR | text", "[ERROR] text"
    return at != std::string_view::npos && at > 0 && has_text(" [|:(", line.substr(at - 1, 1)) &&
           at + word.size() < line.size() && !is_of_word(line[at + word.size()]);
  });
}

namespace {

/// An exception that was not caught is shown from the module down. From a function down: that
/// function caught it.
bool begins_in_function(const LineViews& lines, std::size_t heading) {
  constexpr std::array<std::string_view, 3> kOutermost = {
      ", in <module>", ", in _run_module_as_main", ", in _run_code"};
  if (heading + 1 >= lines.size()) return false;
  const std::string_view frame = lines[heading + 1];
  return has_text(frame, "File \"") && has_text(frame, ", in ") && !has_any_text(frame, kOutermost);
}

/// The function returns the exception of a chain whose last traceback begins with that heading.
Traceback traceback_at(const LineViews& lines, std::size_t heading) {
  Traceback found;
  const bool is_group = has_text(lines[heading], "Exception Group ");
  found.exception = is_group ? end_of_group(lines, heading) : exception_after(lines, heading);
  found.end = std::min(found.exception + (is_group ? 0 : 1), lines.size());
  if (is_group) found.exception = found.end;
  while (introduced_by(lines, heading, kLinks)) {
    const std::size_t earlier = heading_before(lines, heading);
    if (earlier == heading) break;  // its heading was lost with older output
    heading = earlier;
  }
  found.is_of_thread = heading > 0 && starts_with_any(lines[heading - 1], kOfThread);
  found.is_of_child = heading > 0 && is_of_child(lines[heading - 1]);
  // Of that exception Python ends by SIGINT, and not with a code.
  const bool is_interrupt = found.exception < lines.size() &&
                            without_rank(lines[found.exception]).starts_with("KeyboardInterrupt");
  found.is_caught = is_interrupt || begins_in_function(lines, heading);
  found.begin = heading - (found.is_of_thread || found.is_of_child ? 1 : 0);
  const auto first = lines.begin() + static_cast<std::ptrdiff_t>(heading);
  const auto link = std::find_if(first, lines.end(), links_tracebacks);
  const auto next = std::find_if(link, lines.end(), [](std::string_view line) {
    return line.empty() || without_rank(line).empty();
  });
  found.first_end = static_cast<std::size_t>(std::distance(lines.begin(), next));
  if (next != lines.end()) ++found.first_end;
  return found;
}

/// A program that failed to import has no thread yet, and many can do without a module.
bool is_of_import(const LineViews& lines, const Traceback& traceback) {
  if (traceback.exception >= lines.size()) return false;
  const std::string_view name = without_rank(lines[traceback.exception]);
  return name.starts_with("ImportError: ") || name.starts_with("ModuleNotFoundError: ");
}

/// Whether behind line `at` there are only tracebacks of threads and children, and those that
/// functions caught, with what introduces them.
bool only_asides_follow(const LineViews& lines, std::size_t at) {
  std::size_t introduced = 0;
  while (at < lines.size()) {
    const std::size_t aside = end_of_aside(lines, at);
    const bool is_traceback = aside > at || is_traceback_heading(lines[at]);
    if (is_traceback) introduced = 0;
    if (!is_traceback && !is_noise(lines[at]) && ++introduced > kIntroductionLines) return false;
    at = aside > at ? aside : (is_traceback ? exception_after(lines, at) : at) + 1;
  }
  return introduced == 0;
}

}  // namespace

std::optional<Traceback> last_traceback(const LineViews& lines) {
  const std::size_t last = heading_before(lines, lines.size());
  if (last == lines.size()) return std::nullopt;
  const Traceback found = traceback_at(lines, last);
  // Python waits for threads and children after the exception of its main thread, which some do
  // not survive, and calls hooks.
  for (Traceback before = found; before.is_aside();) {
    const std::size_t earlier = heading_before(lines, before.begin);
    if (earlier == before.begin) break;
    before = traceback_at(lines, earlier);
    if (before.is_aside()) continue;
    const bool was_logged = before.begin > 0 && is_log_record(lines[before.begin - 1]);
    const bool was_caught = was_logged || is_of_import(lines, before);
    if (was_caught || !only_asides_follow(lines, before.end)) return found;
    before.is_followed = true;
    return before;
  }
  return found;
}

bool may_be_uncaught(const ExitStatus& status) {
  return status.by_signal() || status.code() == 1;
}

std::size_t end_of_aside(const LineViews& lines, std::size_t at) {
  const bool is_ignored = has_any_text(lines[at], kIgnored);
  if (!is_ignored && !starts_with_any(lines[at], kOfThread) && !is_of_child(lines[at])) return at;
  const std::size_t last = std::min(at + kIntroductionLines, lines.size() - 1);
  std::size_t heading = at;
  while (heading < last && !is_traceback_heading(lines[heading])) ++heading;
  if (!is_traceback_heading(lines[heading])) heading = at;
  const std::size_t end = exception_after(lines, heading) + 1;
  if (end > lines.size() || (heading == at && end > last + 1)) return at + 1;
  if (!has_text(lines[at], kLoggingError)) return end;
  // "Call stack:", frames, "Message: ...", "Arguments: ..."
  const auto from = lines.begin() + static_cast<std::ptrdiff_t>(end);
  const auto arguments = std::find_if(
      from, lines.end(), [](std::string_view line) { return line.starts_with("Arguments: "); });
  if (arguments == lines.end()) return end;
  return static_cast<std::size_t>(std::distance(lines.begin(), arguments)) + 1;
}

LineViews own_account(LineViews lines) {
  const auto leave_out = [&lines](std::size_t from, std::size_t to) {
    for (std::size_t at = from; at < to; ++at) lines[at] = {};
  };
  for (std::size_t at = 0; at < lines.size(); ++at) {
    if (has_any_text(lines[at], kIgnored)) leave_out(at, end_of_aside(lines, at));
  }
  const auto traceback = last_traceback(lines);
  if (traceback && traceback->is_followed) leave_out(traceback->end, lines.size());
  return lines;
}

namespace {

/// Whether what begins there may be an exception that Python shows because it ends the process. A
/// logger or a function that shows one has caught it.
bool may_end_process(const LineViews& lines, std::size_t begin) {
  if (!is_traceback_heading(lines[begin])) return false;
  while (introduced_by(lines, begin, kLinks)) {
    const std::size_t earlier = heading_before(lines, begin);
    if (earlier == begin) break;
    begin = earlier;
  }
  const bool was_logged = begin > 0 && is_log_record(lines[begin - 1]);
  return !was_logged && !begins_in_function(lines, begin);
}

/// Whether programs count so while they save, clean up or try again.
bool is_of_end(std::string_view shape) {
  constexpr std::array<std::string_view, 16> kVerbs = {
      "sav",   "writ", "flush", "upload", "sync", "clos", "clean", "checkpoint",
      "retry", "wait", "shut",  "stop",   "kill", "remo", "delet", "attempt"};
  std::string lower(shape);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return has_any_text(lower, kVerbs);
}

/// The whole numbers of a line, but for those of dates, times and fractions.
std::vector<int> counters_in(std::string_view line) {
  constexpr std::size_t kDigitsMax = 9;
  const auto joins = [&](std::size_t mark, std::size_t digit) {
    return mark < line.size() && digit < line.size() && is_digit(line[digit]) &&
           has_text(".:,-", line.substr(mark, 1));
  };
  std::vector<int> counters;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = at;
    int value = 0;
    for (; at < line.size() && is_digit(line[at]); ++at) {
      if (at - begin < kDigitsMax) value = value * 10 + (line[at] - '0');
    }
    const std::size_t size = at - begin;
    const bool is_part = (begin > 1 && joins(begin - 1, begin - 2)) || joins(at, at + 1);
    if (size > 0) counters.push_back(is_part || size > kDigitsMax ? 0 : value);
    if (size == 0) ++at;
  }
  return counters;
}

/// Whether a number grows from one of these lines to the next and from that to the third.
bool counts_up(const std::vector<std::string_view>& lines) {
  std::vector<std::vector<int>> counters;
  for (const std::string_view line : lines) counters.push_back(counters_in(line));
  for (std::size_t at = 2; at < lines.size(); ++at) {
    const auto& first = counters[at - 2];
    const auto& second = counters[at - 1];
    const auto& third = counters[at];
    const std::size_t count = std::min({first.size(), second.size(), third.size()});
    for (std::size_t i = 0; i < count; ++i) {
      if (first[i] < second[i] && second[i] < third[i]) return true;
    }
  }
  return false;
}

/// Whether the lines behind an event show work: two of a shape that the program printed before, or
/// three that count on. Threads run on beside an exception that ends the process: what they
/// repeated before is work only if the program has another last word.
bool works_on(const LineViews& lines, std::size_t begin, const std::vector<std::size_t>& sequel) {
  const std::set<std::string> before = shapes_before(lines, begin);
  std::map<std::string, std::vector<std::string_view>> after;
  for (const std::size_t at : sequel) after[shape_of(lines[at])].push_back(lines[at]);
  const bool has_last_word = !before.contains(shape_of(lines[sequel.back()]));
  const bool may_be_thread = !has_last_word && may_end_process(lines, begin);
  return std::any_of(after.begin(), after.end(), [&](const auto& one) {
    const auto& [shape, again] = one;
    if (!is_numbered(shape) || again.size() < 2) return false;  // once is what it saves at its end
    if (before.contains(shape)) return !may_be_thread;
    return !is_of_end(shape) && counts_up(again);
  });
}

}  // namespace

Sequel sequel_of(const LineViews& lines, std::size_t begin, std::size_t end,
                 const std::optional<ExitStatus>& status) {
  Sequel sequel;
  for (std::size_t at = end; at < lines.size();) {
    const std::size_t aside = end_of_aside(lines, at);
    if (aside == at && !is_noise(lines[at])) sequel.lines.push_back(at);
    at = std::max(aside, at + 1);
  }
  if (sequel.lines.empty()) return sequel;
  sequel.worked = works_on(lines, begin, sequel.lines);
  const bool says_more = sequel.lines.size() > 1;
  const bool fails_anew = says_more && reports_failure(lines[sequel.lines.back()]);
  const bool was_handled = says_more && status && !may_be_uncaught(*status);
  sequel.went_on = sequel.worked || fails_anew || was_handled;
  return sequel;
}

namespace {

/// The exception of a chain that decides: the first one, where each is the direct cause of the
/// next.
std::string_view cause_in(const LineViews& lines, const Traceback& traceback) {
  const auto begin = lines.begin() + static_cast<std::ptrdiff_t>(traceback.begin);
  const auto end = lines.begin() + static_cast<std::ptrdiff_t>(traceback.end);
  const auto links = [&](std::string_view text) {
    return std::any_of(begin, end, [text](std::string_view line) { return has_text(line, text); });
  };
  const bool is_last = traceback.exception < traceback.end &&
                       (!links(kDirectCause) || links(kInHandler) || links(kOriginal));
  if (is_last) return without_rank(lines[traceback.exception]);
  const auto first = std::find_if(begin, end, [](std::string_view line) {
    return is_exception(without_gutter(without_rank(line)));
  });
  return without_gutter(without_rank(first == end ? *std::prev(end) : *first));
}

/// Whether the fault handler reports a crash there within Python's code, which did not shut down.
bool crashes_behind(const LineViews& lines, std::size_t end) {
  const auto from = lines.begin() + static_cast<std::ptrdiff_t>(end);
  const auto fault = std::find_if(from, lines.end(), [](std::string_view line) {
    return without_rank(line).starts_with(kFaultReport);
  });
  return std::any_of(fault, lines.end(), [](std::string_view line) {
    return without_rank(line).starts_with("  File \"");
  });
}

/// Of the C++ runtime and the fault handler their reason, not the stack below it.
std::string_view last_statement(const LineViews& lines) {
  std::string_view aborted;
  for (std::size_t at = lines.size(); at > 0; --at) {
    const std::string_view line = without_rank(lines[at - 1]);
    const bool is_fault = line.starts_with(kFaultReport);
    if (is_fault && has_text(line, "Aborted")) aborted = line;  // its reason may be above
    const bool is_reason = line.starts_with("  what():  ") || (is_fault && line != aborted);
    if (is_reason || !is_noise(line)) return line;
  }
  return aborted;
}

struct Ending {
  std::string_view telling{};
  std::string_view last_word{};  // behind an exception that it tells; empty: none of its own
};

Ending ending_of(const LineViews& lines) {
  const LineViews own = own_account(lines);
  const auto traceback = last_traceback(own);
  if (traceback && !crashes_behind(own, traceback->end)) {
    const Sequel sequel = sequel_of(own, traceback->begin, traceback->end, {});
    if (!sequel.went_on) {
      const std::string_view last =
          sequel.lines.empty() ? std::string_view() : own[sequel.lines.back()];
      const bool was_said = shapes_before(own, traceback->begin).contains(shape_of(last));
      return {cause_in(own, *traceback), was_said ? std::string_view() : last};
    }
  }
  if (const std::string_view said = last_statement(own); !said.empty()) return {said};
  const auto last = std::find_if(lines.rbegin(), lines.rend(),
                                 [](std::string_view line) { return !line.empty(); });
  return {last == lines.rend() ? std::string_view() : *last};
}

}  // namespace

std::string_view telling_line(const LineViews& lines) {
  return ending_of(lines).telling;
}

std::string likeness_of(const LineViews& lines) {
  const Ending ending = ending_of(lines);
  std::string likeness(ending.telling);
  return ending.last_word.empty() ? likeness : likeness + " / " + std::string(ending.last_word);
}

bool says_nothing(const LineViews& lines) {
  const LineViews own = own_account(lines);
  return std::all_of(own.begin(), own.end(), is_noise);
}

}  // namespace ddprun

#include "agent/core/text.hpp"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "agent/core/limits.hpp"
#include "base/count_text.hpp"
#include "base/limits.hpp"
#include "base/printable.hpp"

namespace ddprun {

namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

std::vector<std::string> lines_of(std::string_view tail) {
  std::vector<std::string> lines;
  while (!tail.empty()) {
    const auto end = std::min(tail.find('\n'), tail.size());
    lines.push_back(quotable(tail.substr(0, end)));
    tail.remove_prefix(std::min(end + 1, tail.size()));
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

bool is_heading(const std::string& line) {
  return line.find("Traceback (most recent call last)") != std::string::npos;
}

bool links_tracebacks(const std::string& line) {
  constexpr std::string_view kContext = "During handling of the above exception, another exception";
  constexpr std::string_view kCause = "The above exception was the direct cause of the following";
  return line.find(kContext) != std::string::npos || line.find(kCause) != std::string::npos;
}

/// Where the last heading before line `end` stands; `end` if there is none.
std::size_t heading_before(const std::vector<std::string>& lines, std::size_t end) {
  for (std::size_t at = end; at > 0; --at) {
    if (is_heading(lines[at - 1])) return at - 1;
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

std::string left_out_text(std::size_t lines) {
  return "... " + count_text(static_cast<long long>(lines), "line") + " left out ...";
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
    if (left_out > 0) text.push_back(left_out_text(left_out));
    left_out = 0;
    text.push_back(lines[at]);
  }
  return text;
}

}  // namespace

std::string quotable(std::string_view line) {
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (const auto bar = line.rfind('\r'); bar != std::string_view::npos) line.remove_prefix(bar + 1);
  std::string text = printable(line.substr(0, kReportLineBytesMax));
  if (line.size() > kReportLineBytesMax) text += "...";
  return text;
}

std::string time_text(WallTime when) {
  const auto ms = duration_cast<milliseconds>(when.time_since_epoch()).count();
  const time_t seconds = static_cast<time_t>(ms / 1000);
  tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::snprintf(text, sizeof text, "%02d:%02d:%02d.%03dZ", utc.tm_hour, utc.tm_min, utc.tm_sec,
                static_cast<int>(ms % 1000));
  return text;
}

std::string who(const WorkerName& worker) {
  return "rank " + std::to_string(worker.rank.value()) + " (local " +
         std::to_string(worker.local_rank.value()) + ", pid " + std::to_string(worker.pid) +
         ") on " + printable(worker.host);
}

std::string labelled(const std::string& label, const std::string& text) {
  return "\n  " + label + std::string(10 - label.size(), ' ') + printable(text);
}

std::vector<std::string> quotable_lines(std::string_view tail) {
  std::vector<std::string> lines = lines_of(tail);
  const auto chain = last_chain(lines);
  const auto drop_first = [&lines](std::size_t count) {
    lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(count));
  };
  if (chain) drop_first(chain->begin);
  if (lines.size() <= kReportLinesMax) return lines;
  if (chain) return shortened(lines, chain->first_end - chain->begin);
  drop_first(lines.size() - kReportLinesMax);
  return lines;
}

}  // namespace ddprun

#include "agent/core/text.hpp"

#include <time.h>

#include <algorithm>
#include <cstdio>

#include "agent/core/limits.hpp"
#include "base/limits.hpp"

namespace ddprun {

namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

std::string quotable(std::string_view line) {
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (const auto bar = line.rfind('\r'); bar != std::string_view::npos) line.remove_prefix(bar + 1);
  std::string text(line.substr(0, kReportLineBytesMax));
  if (text.size() < line.size()) text += "...";
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; }, '?');
  return text;
}

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

}  // namespace

std::string duration_text(Duration duration) {
  const auto ms = duration_cast<milliseconds>(duration).count();
  const auto seconds = ms / 1000;
  if (ms < 1000) return std::to_string(ms) + " ms";
  if (seconds < 10) return std::to_string(seconds) + "." + std::to_string(ms % 1000 / 100) + " s";
  if (seconds < 120) return std::to_string(seconds) + " s";
  if (seconds < 3600) {
    return std::to_string(seconds / 60) + " m " + std::to_string(seconds % 60) + " s";
  }
  return std::to_string(seconds / 3600) + " h " + std::to_string(seconds % 3600 / 60) + " m";
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

std::string ranks_text(int count) {
  return std::to_string(count) + (count == 1 ? " rank" : " ranks");
}

std::vector<std::string> quotable_lines(std::string_view tail) {
  std::vector<std::string> lines = lines_of(tail);
  const auto heading = std::find_if(lines.rbegin(), lines.rend(), [](const std::string& line) {
    return line.find("Traceback (most recent call last)") != std::string::npos;
  });
  if (heading != lines.rend()) lines.erase(lines.begin(), heading.base() - 1);
  const auto extra = static_cast<std::ptrdiff_t>(lines.size()) - kReportLinesMax;
  if (extra > 0) lines.erase(lines.begin(), lines.begin() + extra);
  return lines;
}

}  // namespace ddprun

// Which lines of a worker's output can name the cause of its exit.
#include <algorithm>
#include <string>

#include "agent/core/quotation.hpp"
#include "agent/core/verdict/families.hpp"
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

/// Without the "[rank3]: " that torch puts before each line.
std::string_view without_rank(std::string_view line) {
  constexpr std::string_view kBegin = "[rank";
  const auto end = line.find("]: ");
  if (line.substr(0, kBegin.size()) != kBegin || end == std::string_view::npos) return line;
  return line.substr(end + 3);
}

/// Source code and file names are indented.
bool is_exception(std::string_view line) {
  const std::string_view bare = without_rank(line);
  return !bare.empty() && bare.front() != ' ' && bare.front() != '\t' &&
         !is_traceback_heading(bare);
}

std::string_view trimmed(std::string_view line) {
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  return line;
}

/// What torchrun's table says of its root cause: "rank 1 (local_rank: 1), exitcode 3 (pid: 42)".
std::string root_cause_of_torchrun(std::string_view tail) {
  const auto heading = tail.rfind("Root Cause (first observed failure)");
  if (heading == std::string_view::npos) return {};
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

std::string last_line_with(std::string_view tail, std::string_view text) {
  const auto at = tail.rfind(text);
  if (at == std::string_view::npos) return {};
  const auto before = tail.rfind('\n', at);
  const auto begin = before == std::string_view::npos ? 0 : before + 1;
  return quotable(tail.substr(begin, tail.find('\n', at) - begin));
}

/// What tells wherever it stands: the headline of a ddprun inside the worker, and what() of a C++
/// exception that ended the program.
bool tells_anywhere(std::string_view line) {
  const std::size_t prefix = own_error_prefix(line);
  const bool headline = prefix > 0 && line.substr(prefix).starts_with("error [W-");
  return headline || line.starts_with("  what():  ");
}

}  // namespace

std::vector<std::string_view> telling_lines(const WorkerExit& exit) {
  std::vector<std::string_view> lines;
  const bool traceback = std::any_of(exit.lines.begin(), exit.lines.end(), is_traceback_heading);
  if (traceback) {
    for (const std::string& line : exit.lines) {
      if (is_exception(line)) lines.push_back(without_rank(line));
    }
  } else {
    for (auto line = exit.lines.rbegin(); line != exit.lines.rend(); ++line) {
      if (lines.size() < kLastLinesMax && !line->empty()) lines.push_back(without_rank(*line));
    }
  }
  for (const std::string& line : exit.lines) {
    const std::string_view bare = without_rank(line);
    const bool known = std::find(lines.begin(), lines.end(), bare) != lines.end();
    if (tells_anywhere(bare) && !known) lines.push_back(bare);
  }
  if (!exit.evidence.telling_line.empty()) lines.push_back(exit.evidence.telling_line);
  return lines;
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

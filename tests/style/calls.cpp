#include <string>
#include <string_view>
#include <vector>

#include "tests/style/rules.hpp"

namespace ddprun::style {
namespace {

// A test waits for a condition with a deadline; a pause is either too short or too long.
using Names = std::vector<std::string_view>;
const Names kSleeps{"sleep", "usleep", "nanosleep", "sleep_for", "sleep_until", "clock_nanosleep"};
const Names kProcessStarts{"fork",  "vfork",       "clone",       "clone3",
                           "popen", "posix_spawn", "posix_spawnp"};
const Names kClocks{"Clock::now",    "steady_clock::now", "system_clock::now",
                    "clock_gettime", "gettimeofday",      "getenv",
                    "secure_getenv"};

/// A call is the name with an opening parenthesis after it and no member access before it, save
/// that of a module or namespace: `std::this_thread::sleep_for(`, Python's `time.sleep(`.
bool is_call(const SourceFile& file, std::size_t at, std::size_t length) {
  const std::string_view code = file.code;
  std::size_t after = at + length;
  while (after < code.size() && code[after] == ' ') {
    ++after;
  }
  const bool dotted = file.language == Language::kCpp && at >= 1 && code[at - 1] == '.';
  const bool method = dotted || (at >= 2 && code.substr(at - 2, 2) == "->");
  return after < code.size() && code[after] == '(' && !method;
}

void ban(const SourceFile& file, const Names& names, const std::string& sentence,
         Violations& violations) {
  for (const std::string_view name : names) {
    for (const std::size_t at : find_word(file.code, name)) {
      if (is_call(file, at, name.size())) {
        violations.push_back(
            {file.path, line_of(file.code, at), "call", std::string(name) + "(): " + sentence});
      }
    }
  }
}

}  // namespace

void check_calls(const SourceFile& file, Violations& violations) {
  const bool cpp = file.language == Language::kCpp;
  if (!cpp && file.language != Language::kPython) {
    return;
  }
  if (file.path.starts_with("tests/")) {
    ban(file, kSleeps, "a test waits for a condition with a deadline", violations);
  }
  const bool may_start = file.path.starts_with("agent/proc/") ||
                         file.path.starts_with("launcher/front/") ||
                         file.path.starts_with("tests/proc/");  // what a fork in a worker means
  if (cpp && !may_start) {
    ban(file, kProcessStarts, "only agent/proc and launcher/front start processes", violations);
  }
  if (cpp && is_pure_core(file.path)) {
    ban(file, kClocks, "a pure core takes time and environment as arguments", violations);
  }
}

}  // namespace ddprun::style

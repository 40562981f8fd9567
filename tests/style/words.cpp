#include <array>
#include <cctype>
#include <string>
#include <string_view>

#include "tests/style/rules.hpp"

namespace ddprun::style {
namespace {

// Written in two pieces, so that this file passes its own rule.
constexpr std::array<std::string_view, 4> kMarks{
    "FIX"
    "ME",
    "TO"
    "DO",
    "XX"
    "X",
    "HA"
    "CK"};
// First parts of absolute paths that exist on one machine only.
constexpr std::array<std::string_view, 5> kOneMachine{"work", "root", "mnt", "scratch", "Users"};

struct Wording {
  std::string_view word;
  std::string_view instead;
};
// Words that a reader of the field does not expect, and the term to use instead.
constexpr std::array<Wording, 21> kWordings{{
    {"nobody", "the noun: no agent, no client"},
    {"Nobody", "the noun: no agent, no client"},
    {"somebody", "the noun: another agent, a client"},
    {"anybody", "the noun: any agent, any client"},
    {"everybody", "the noun: all agents, all clients"},
    {"whoever", "the noun: the agent that"},
    {"Whoever", "the noun: the agent that"},
    {"anew", "again, a new run"},
    {"aftermath", "key change"},
    {"charter", "run terms"},
    {"companion", "coordinator"},
    {"haste", "forced stop"},
    {"litter", "temporary files"},
    {"patience", "timeout"},
    {"goes on", "continues"},
    {"go on", "continue, resume"},
    {"look-up", "lookup"},
    {"made-up", "synthetic, generated"},
    {"makes no sense", "is invalid"},
    {"make no sense", "are invalid"},
    {"of its own accord", "without being stopped"},
}};
// This rule and its test quote the wordings.
constexpr std::string_view kQuotesWordings = "tests/style/";

void check_marks(const SourceFile& file, Violations& violations) {
  for (const std::string_view mark : kMarks) {
    for (const std::size_t at : find_word(file.text, mark)) {
      violations.push_back({file.path, line_of(file.text, at), "mark",
                            std::string(mark) + ": do it, or say in a sentence why not"});
    }
  }
}

void check_paths(const SourceFile& file, Violations& violations) {
  for (const std::string_view folder : kOneMachine) {
    const std::string path = "/" + std::string(folder) + "/";
    for (auto at = file.text.find(path); at != std::string::npos;
         at = file.text.find(path, at + 1)) {
      const char before = at == 0 ? ' ' : file.text[at - 1];
      const bool inner = std::isalnum(static_cast<unsigned char>(before)) != 0 || before == '.' ||
                         before == '_' || before == '}' || before == '-';
      if (!inner) {
        violations.push_back(
            {file.path, line_of(file.text, at), "path", path + "... exists on one machine only"});
      }
    }
  }
}

void check_wordings(const SourceFile& file, Violations& violations) {
  if (file.path.starts_with(kQuotesWordings)) return;
  for (const auto& [word, instead] : kWordings) {
    for (const std::size_t at : find_word(file.text, word)) {
      violations.push_back({file.path, line_of(file.text, at), "wording",
                            "\"" + std::string(word) + "\": say " + std::string(instead)});
    }
  }
}

/// CTest passes the name to the program, which would parse it as a flag.
void check_test_names(const SourceFile& file, Violations& violations) {
  const std::string_view opening = "TEST_CASE(\"-";
  for (auto at = file.text.find(opening); at != std::string::npos;
       at = file.text.find(opening, at + 1)) {
    if (file.code.substr(at, 9) == "TEST_CASE") {
      violations.push_back(
          {file.path, line_of(file.text, at), "name", "a test's name must not begin with a dash"});
    }
  }
}

void check_opening(const SourceFile& file, Violations& violations) {
  if (!file.path.ends_with(".hpp")) {
    return;
  }
  if (!file.text.starts_with("//")) {
    violations.push_back({file.path, 1, "header", "a header opens with a sentence: what it is"});
  }
  if (file.code.find("#pragma once") == std::string::npos) {
    violations.push_back({file.path, 1, "header", "#pragma once is missing"});
  }
}

}  // namespace

void check_words(const SourceFile& file, Violations& violations) {
  if (file.language != Language::kDocument) {
    check_marks(file, violations);
  }
  check_paths(file, violations);
  check_wordings(file, violations);
  check_opening(file, violations);
  check_test_names(file, violations);
}

Violations check(const SourceFile& file) {
  Violations violations;
  check_includes(file, violations);
  check_awaits(file, violations);
  check_calls(file, violations);
  check_sizes(file, violations);
  check_words(file, violations);
  return violations;
}

}  // namespace ddprun::style

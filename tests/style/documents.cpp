// What the documents say about the tree: links and files that are named exist, tables of tests have
// their exact names, docs/REPORT.md has the codes of reports.
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/style/rules.hpp"

namespace ddprun::style {
namespace {

constexpr std::string_view kInternals = "docs/internals/";
constexpr std::string_view kReport = "docs/REPORT.md";
// Python declares a test by a method, or by a call of one of these whose first argument names it.
constexpr std::array<std::string_view, 6> kNamesCase{"case",    "on_both", "fault",
                                                     "control", "Setup",   "Case"};
// The last column of a table of tests. The second one is of defects that no test shows alone.
constexpr std::string_view kTests = "| tests |";
constexpr std::string_view kTestsIfAny = "| tests, if any |";

bool is_word(char c) {
  return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0;
}

bool is_there(const std::vector<SourceFile>& files, const std::string& path) {
  return std::any_of(files.begin(), files.end(), [&](const SourceFile& file) {
    return file.path == path || file.path.starts_with(path + "/");
  });
}

/// Takes the last word off `text`, and the blanks around it.
std::string_view take_word(std::string_view& text) {
  const std::string_view all = text = trimmed(text);
  while (!text.empty() && is_word(text.back())) text.remove_suffix(1);
  const std::string_view word = all.substr(text.size());
  text = trimmed(text);
  return word;
}

/// Is the literal behind `before` the name of a test?
bool declares_test(std::string_view before, Language language) {
  before = trimmed(before);
  if (language == Language::kCpp) return before.ends_with("TEST_CASE(");
  if (language == Language::kCMake && !before.ends_with('(')) take_word(before);  // set(name "..."
  if (!before.ends_with('(')) return false;
  before.remove_suffix(1);
  const std::string_view called = take_word(before);
  return language == Language::kCMake ||
         std::find(kNamesCase.begin(), kNamesCase.end(), called) != kNamesCase.end();
}

/// The literal that begins at `at`, with those behind it that the language joins to it. `at` is
/// behind them then.
std::string literal_at(std::string_view text, std::size_t& at, Language language) {
  std::string value;
  do {
    for (++at; at < text.size() && text[at] != '"'; ++at) {
      if (text[at] == '\\') ++at;
      value += text.substr(at, 1);
    }
    ++at;
    const std::size_t next = text.find_first_not_of(" \n", at);
    if (language == Language::kCMake || next == std::string_view::npos || text[next] != '"') break;
    at = next;
  } while (true);
  return value;
}

void add_literals(const SourceFile& file, std::set<std::string>& names) {
  constexpr std::size_t kBeforeMax = 80;  // a call and its first word
  const std::string_view text = file.text;
  for (std::size_t at = text.find('"'); at < text.size(); at = text.find('"', at)) {
    const std::size_t begin = at - std::min(at, kBeforeMax);
    if (!declares_test(text.substr(begin, at - begin), file.language)) {
      ++at;
      continue;
    }
    std::string name = literal_at(text, at, file.language);
    const std::size_t interpreter = name.find(" (${");  // one case for each
    names.insert(name.substr(0, interpreter));
  }
}

/// Names of functions: of methods of unittest, and of cases that CMake lists.
void add_functions(const SourceFile& file, std::set<std::string>& names) {
  const std::string_view text = file.text;
  for (auto at = text.find("def "); at != std::string_view::npos; at = text.find("def ", at)) {
    at += 4;
    const std::size_t end = text.find('(', at);
    if (end != std::string_view::npos) names.emplace(text.substr(at, end - at));
  }
}

/// Every name by which a table may name a test. docs/internals/FAILURES.md lists the forms.
std::set<std::string> names_of_tests(const std::vector<SourceFile>& files) {
  std::set<std::string> names;
  for (const SourceFile& file : files) {
    const std::filesystem::path path = file.path;
    if (file.path.starts_with("bench/")) names.insert(file.path);
    if (!file.path.starts_with("tests/")) continue;
    if (file.path.starts_with("tests/scenario/")) names.insert("scenario: " + path.stem().string());
    add_literals(file, names);
    if (file.language == Language::kPython) add_functions(file, names);
  }
  return names;
}

/// The names in the last cell of a row, each in backticks, with commas between; none if it is not
/// written so.
std::optional<std::vector<std::string>> tests_named_in(std::string_view row) {
  std::vector<std::string> names;
  row.remove_suffix(row.size() - row.rfind('|'));
  row = trimmed(row.substr(row.rfind('|') + 1));
  while (row.starts_with('`')) {
    const std::size_t end = row.find('`', 1);
    if (end == std::string_view::npos) return std::nullopt;
    names.emplace_back(row.substr(1, end - 1));
    row.remove_prefix(end + 1);
    if (row.starts_with(", `")) row.remove_prefix(2);
  }
  return row.empty() ? std::optional(names) : std::nullopt;
}

void check_tests_named(const SourceFile& document, const std::set<std::string>& tests,
                       Violations& violations) {
  const auto lines = lines_of(document.text);
  bool in_table = false;
  bool may_be_none = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].ends_with(kTests) || lines[i].ends_with(kTestsIfAny)) {
      in_table = true;
      may_be_none = lines[i].ends_with(kTestsIfAny);
      continue;
    }
    in_table = in_table && lines[i].starts_with('|');
    if (!in_table || lines[i].starts_with("|--")) continue;
    const auto found = [&](const std::string& sentence) {
      violations.push_back({document.path, static_cast<int>(i) + 1, "test", sentence});
    };
    const auto names = tests_named_in(lines[i]);
    if (!names || (names->empty() && !may_be_none)) {
      found("the last cell is `a test`, `another one`");
      continue;
    }
    for (const std::string& name : *names) {
      if (!tests.contains(name)) found("no test is called \"" + name + "\"");
    }
  }
}

/// Documents that comments, scripts and messages name.
void check_named_documents(const SourceFile& file, const std::vector<SourceFile>& files,
                           Violations& violations) {
  const std::string_view text = file.text;
  for (auto at = text.find("docs/"); at != std::string_view::npos;
       at = text.find("docs/", at + 1)) {
    std::size_t end = at;
    while (end < text.size() && (is_word(text[end]) || text[end] == '/' || text[end] == '-')) ++end;
    const std::string path(text.substr(at, end - at + 3));
    if (text.substr(end).starts_with(".md") && !is_there(files, path)) {
      violations.push_back({file.path, line_of(text, at), "link", path + " is not there"});
    }
  }
}

void check_links(const SourceFile& document, const std::vector<SourceFile>& files,
                 Violations& violations) {
  const std::string_view text = document.text;
  for (auto at = text.find("]("); at != std::string_view::npos; at = text.find("](", at + 1)) {
    const std::string_view target = text.substr(at + 2, text.find(')', at) - at - 2);
    const auto folder = std::filesystem::path(document.path).parent_path();
    const std::string path = (folder / target).lexically_normal().generic_string();
    if (target.find("://") == std::string_view::npos && !is_there(files, path)) {
      violations.push_back({document.path, line_of(text, at), "link", path + " is not there"});
    }
  }
}

/// Codes like W-EXIT behind `mark`, which stands before each, with the line of each one.
std::map<std::string, int> codes_in(std::string_view text, char mark) {
  std::map<std::string, int> codes;
  const std::string begin = mark + std::string("W-");
  for (auto at = text.find(begin); at != std::string_view::npos; at = text.find(begin, at + 1)) {
    const auto end = text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ-", at + 1);
    codes.emplace(text.substr(at + 1, end - at - 1), line_of(text, at));
  }
  return codes;
}

void check_codes(const SourceFile& report, const std::vector<SourceFile>& files,
                 Violations& violations) {
  const auto described = codes_in(report.text, '`');
  for (const SourceFile& file : files) {
    if (!file.path.starts_with("agent/") && !file.path.starts_with("rendezvous/")) continue;
    for (const auto& [code, line] : codes_in(file.text, '"')) {
      if (described.contains(code)) continue;
      violations.push_back({file.path, line, "code", code + " has no row in " + report.path});
    }
  }
}

}  // namespace

Violations check_documents(const std::vector<SourceFile>& files) {
  Violations violations;
  const std::set<std::string> tests = names_of_tests(files);
  for (const SourceFile& file : files) {
    if (file.path.ends_with(".md")) check_links(file, files, violations);
    if (file.path.starts_with(kInternals)) check_tests_named(file, tests, violations);
    const bool has_samples = file.path.starts_with("tests/style/");
    if (!has_samples) check_named_documents(file, files, violations);
    if (file.path == kReport) check_codes(file, files, violations);
  }
  return violations;
}

}  // namespace ddprun::style

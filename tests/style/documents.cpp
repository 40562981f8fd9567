// What the documents say about the tree: links lead somewhere, rows of docs/FAILURES.md and
// docs/SECURITY-MODEL.md name tests that exist, docs/REPORT.md has the codes of reports.
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/style/rules.hpp"

namespace ddprun::style {
namespace {

// Tables whose last column names tests.
constexpr std::array<std::string_view, 2> kNameTests{"docs/FAILURES.md", "docs/SECURITY-MODEL.md"};
constexpr std::string_view kReport = "docs/REPORT.md";

/// `text` as one line of words: pieces of a literal joined, `_` as the blank that CMake makes of
/// it.
std::string words_of(std::string_view text) {
  std::string words;
  for (const char c : text) {
    const bool gap = c == '_' || std::isspace(static_cast<unsigned char>(c)) != 0;
    if (gap && !words.ends_with(' ')) words += ' ';
    if (!gap && c != '"') words += c;
  }
  return words;
}

bool is_there(const std::vector<SourceFile>& files, const std::string& path) {
  return std::any_of(files.begin(), files.end(), [&](const SourceFile& file) {
    return file.path == path || file.path.starts_with(path + "/");
  });
}

/// The names in the last cell of a table's row, which commas part.
std::vector<std::string> tests_named_in(std::string_view row) {
  std::vector<std::string> names;
  const std::size_t end = row.rfind(" |");
  std::string_view cell = row.substr(0, end);
  cell.remove_prefix(cell.rfind("| ") + 2);
  while (!cell.empty()) {
    const std::size_t comma = std::min(cell.find(", "), cell.size());
    names.emplace_back(cell.substr(0, comma));
    cell.remove_prefix(std::min(comma + 2, cell.size()));
  }
  return names;
}

void check_tests_named(const SourceFile& document, const std::vector<SourceFile>& files,
                       Violations& violations) {
  std::vector<std::string> tests;
  for (const SourceFile& file : files) {
    if (file.path.starts_with("tests/")) tests.push_back(words_of(file.text));
  }
  const auto exists = [&](const std::string& name) {
    constexpr std::string_view kScenario = "scenario: ";
    if (name.starts_with(kScenario)) {
      return is_there(files, "tests/scenario/" + name.substr(kScenario.size()) + ".txt");
    }
    return is_there(files, name) || std::any_of(tests.begin(), tests.end(), [&](const auto& test) {
             return test.find(words_of(name)) != std::string::npos;
           });
  };
  const auto lines = lines_of(document.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool row = lines[i].starts_with("| ") && !lines[i].ends_with("| test |");
    for (const std::string& name : row ? tests_named_in(lines[i]) : std::vector<std::string>{}) {
      if (!exists(name)) {
        violations.push_back({document.path, static_cast<int>(i) + 1, "test",
                              "no test says \"" + name + "\": name the one that shows it"});
      }
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
  for (const SourceFile& file : files) {
    if (file.path.ends_with(".md")) check_links(file, files, violations);
    const bool names_tests =
        std::find(kNameTests.begin(), kNameTests.end(), file.path) != kNameTests.end();
    if (names_tests) check_tests_named(file, files, violations);
    if (file.path == kReport) check_codes(file, files, violations);
  }
  return violations;
}

}  // namespace ddprun::style

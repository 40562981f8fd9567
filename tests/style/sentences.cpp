// Sentences of the programs that several tests quote. "Five words in a row" finds them with few
// false hits, and leaves names, codes and pieces of a few words alone.
#include <algorithm>
#include <array>
#include <cctype>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/style/rules.hpp"

namespace ddprun::style {
namespace {

constexpr std::size_t kWordsInARow = 5;
constexpr std::array<std::string_view, 7> kProduct{
    "agent/", "base/", "launcher/", "net/", "rendezvous/", "worker_api/", "trainer/"};
constexpr std::array<std::string_view, 3> kNamesOfTests{"TEST_CASE(", "SECTION(", "@case("};
// Words of Python, the C library and the dynamic loader, which the programs recognise.
constexpr std::array<std::string_view, 4> kOfOthers{
    "Traceback most recent call last", "No space left on device", "No such file or directory",
    "error while loading shared libraries"};
constexpr std::string_view kNamesSentences = "tests/support/sentences.hpp";
constexpr std::string_view kQuotesSamples = "tests/style/";

/// A literal, with those that follow it immediately.
struct Literal {
  std::size_t at = 0;
  std::string text;
};

bool is_name_of_test(std::string_view before) {
  before = before.substr(0, before.find_last_not_of(" \n") + 1);
  return std::any_of(kNamesOfTests.begin(), kNamesOfTests.end(),
                     [&](std::string_view name) { return before.ends_with(name); });
}

/// Only white space and the prefix of a literal ("f" or "R").
bool is_gap(std::string_view between) {
  if (!between.empty() && std::isalpha(static_cast<unsigned char>(between.back())) != 0) {
    between.remove_suffix(1);
  }
  return trimmed(between).empty();
}

std::vector<Literal> literals_of(const SourceFile& file) {
  const std::string_view quotes = file.language == Language::kCpp ? "\"" : "\"'";
  const std::string_view code = file.code;
  std::vector<Literal> literals;
  std::size_t behind = 0;  // the last literal
  for (auto at = code.find_first_of(quotes); at != std::string_view::npos;
       at = code.find_first_of(quotes, behind)) {
    const std::size_t end = std::min(code.find(code[at], at + 1), code.size() - 1);
    const std::string text = file.text.substr(at + 1, end - at - 1);
    if (!literals.empty() && is_gap(code.substr(behind, at - behind))) {
      literals.back().text += text;
    } else {
      literals.push_back({at, is_name_of_test(code.substr(0, at)) ? "" : text});
    }
    behind = end + 1;
  }
  return literals;
}

/// Every row of words in the literal, "is not a host's name". Numbers do not count; placeholders
/// and line breaks part rows.
std::vector<std::string> rows_of(std::string_view text) {
  std::vector<std::string> rows;
  std::deque<std::string> last;
  const auto is_in_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("'-_./=").find(c) != std::string_view::npos;
  };
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    bool letter = false;
    while (end < text.size() && is_in_word(text[end])) {
      letter = letter || std::isalpha(static_cast<unsigned char>(text[end])) != 0;
      ++end;
    }
    if (letter) {
      last.emplace_back(text.substr(i, end - i));
      if (last.size() > kWordsInARow) last.pop_front();
    }
    if (last.size() == kWordsInARow && letter) {
      std::string row;
      for (const std::string& word : last) row += (row.empty() ? "" : " ") + word;
      rows.push_back(std::move(row));
    }
    if (end == i) {
      const bool parts = std::string_view("{}\\\n").find(text[i]) != std::string_view::npos;
      if (parts) last.clear();
      end += text[i] == '\\' ? 2 : 1;
    }
    i = end;
  }
  return rows;
}

std::string place_of(const SourceFile& file, const Literal& literal) {
  return file.path + ":" + std::to_string(line_of(file.text, literal.at));
}

bool is_product(const SourceFile& file) {
  return file.language == Language::kCpp &&
         std::any_of(kProduct.begin(), kProduct.end(),
                     [&](std::string_view room) { return file.path.starts_with(room); });
}

/// The rows of all sentences of the programs, and where they stand.
std::map<std::string, std::string> rows_of_programs(const std::vector<SourceFile>& files) {
  std::map<std::string, std::string> rows;
  for (const SourceFile& file : files) {
    if (!is_product(file)) continue;
    for (const Literal& literal : literals_of(file)) {
      for (std::string& row : rows_of(literal.text)) {
        rows.try_emplace(std::move(row), place_of(file, literal));
      }
    }
  }
  for (const std::string_view row : kOfOthers) rows.erase(std::string(row));
  return rows;
}

}  // namespace

Violations check_sentences(const std::vector<SourceFile>& files) {
  const auto rows = rows_of_programs(files);
  std::map<std::string, std::string> quoted;  // row -> the first test that quotes it
  Violations violations;
  for (const SourceFile& file : files) {
    const bool code = file.language == Language::kCpp || file.language == Language::kPython;
    if (!code || !file.path.starts_with("tests/")) continue;
    if (file.path.starts_with(kQuotesSamples) || file.path == kNamesSentences) continue;
    for (const Literal& literal : literals_of(file)) {
      const std::string here = place_of(file, literal);
      std::string first;
      for (const std::string& row : rows_of(literal.text)) {
        if (!rows.contains(row)) continue;
        const auto [other, is_new] = quoted.try_emplace(row, here);
        if (is_new || other->second == here || !first.empty()) continue;
        first = row;
        violations.push_back({file.path, line_of(file.text, literal.at), "sentence",
                              "\"" + row + "\" of " + rows.at(row) + " is quoted in " +
                                  other->second + " too: name it in " +
                                  std::string(kNamesSentences) + ", or call what makes it"});
      }
    }
  }
  return violations;
}

}  // namespace ddprun::style

// SourceFile: one file of the tree as the style rules see it. `text` is the file; `code` has the
// same length and the same line breaks, but comments and the insides of literals are blanks, so
// that a rule never trips over a word in a sentence. Plain values.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::style {

enum class Language { kCpp, kPython, kShell, kCMake, kDocument };

struct SourceFile {
  std::string path;  // relative to the repository root, with '/'
  Language language = Language::kDocument;
  std::string text;
  std::string code;
};

/// What a rule found. `sentence` says what to do instead.
struct Violation {
  std::string path;
  int line = 0;
  std::string rule;
  std::string sentence;
};

/// Builds the code view of `text`.
[[nodiscard]] SourceFile make_source(std::string path, std::string text);
/// Every file of the tree under `root` that the rules look at, sorted by path. Build folders,
/// virtual environments and hidden folders other than .ci are left out.
[[nodiscard]] std::vector<SourceFile> load_tree(const std::filesystem::path& root);

/// 1-based line of a byte offset.
[[nodiscard]] int line_of(std::string_view text, std::size_t offset);
/// `text` without white space at its ends.
[[nodiscard]] std::string_view trimmed(std::string_view text);
/// The lines of `text` without their line breaks.
[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text);
/// Offsets at which `word` stands in `text` as a whole word (neither neighbour is a name
/// character).
[[nodiscard]] std::vector<std::size_t> find_word(std::string_view text, std::string_view word);

}  // namespace ddprun::style

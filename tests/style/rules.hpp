// The rules of the house as functions: each looks at one file, or at the whole tree, and says what
// breaks it. Pure: nothing is read or printed here. docs/internals/HACKING.md says how to run them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/style/source_file.hpp"

namespace ddprun::style {

using Violations = std::vector<Violation>;

inline constexpr int kColumnsMax = 100;
inline constexpr int kFileLinesMax = 600;
inline constexpr int kFunctionLinesMax = 70;

/// Who may include whom (the table is in rooms.cpp), and which library a room must not know.
void check_includes(const SourceFile& file, Violations& violations);
/// `co_await` only as a whole statement or to initialise a local, from named arguments: GCC 12
/// builds other shapes into a double free without a warning (docs/ARCHITECTURE.md).
void check_awaits(const SourceFile& file, Violations& violations);
/// Sleeps in tests, processes started outside agent/proc, clocks read by a pure core.
void check_calls(const SourceFile& file, Violations& violations);
/// Columns, lines of a file, lines of a function.
void check_sizes(const SourceFile& file, Violations& violations);
/// Left-over marks, paths that exist on one machine only, words that are not of the field, headers
/// without an opening sentence.
void check_words(const SourceFile& file, Violations& violations);
/// All of the above, which look at one file.
[[nodiscard]] Violations check(const SourceFile& file);
/// Links and mentions of documents that lead nowhere; names of tests in docs/internals that no test
/// has.
/// `files` is the whole tree.
[[nodiscard]] Violations check_documents(const std::vector<SourceFile>& files);
/// Sentences of the programs that more than one test quotes: a wording should be one change.
/// tests/support/sentences.hpp names those that several tests need.
/// `files` is the whole tree.
[[nodiscard]] Violations check_sentences(const std::vector<SourceFile>& files);

struct Function {
  std::string path;
  std::string name;
  int line = 0;    // of the opening brace
  int length = 0;  // from the opening to the closing brace
};

/// The functions of a C++ or Python file. C++ is not parsed, only its braces are: a lambda belongs
/// to the function around it.
[[nodiscard]] std::vector<Function> functions_of(const SourceFile& file);
/// True for a room whose files decide and never act.
[[nodiscard]] bool is_pure_core(std::string_view path);

}  // namespace ddprun::style

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "tests/style/rules.hpp"

namespace ddprun::style {
namespace {

/// The code view without preprocessor lines: a macro's braces belong to no function.
std::string without_directives(const std::string& code) {
  std::string result = code;
  bool directive = false;
  bool line_start = true;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (line_start && result[i] == '#') {
      directive = true;
    }
    if (result[i] == '\n') {
      directive = directive && i > 0 && code[i - 1] == '\\';
      line_start = true;
      continue;
    }
    line_start = line_start && std::isspace(static_cast<unsigned char>(result[i])) != 0;
    if (directive) {
      result[i] = ' ';
    }
  }
  return result;
}

bool has_word(std::string_view text, std::string_view word) {
  return !find_word(text, word).empty();
}

/// Does `head {` open a function body? `head` is what stands since the last `;`, `{` or `}`.
bool opens_function(std::string_view head) {
  const std::size_t open = head.find('(');
  if (open == std::string_view::npos || head.back() == '=' || head.back() == ',') {
    return false;
  }
  const std::string_view name = head.substr(0, open);
  const bool type = has_word(name, "namespace") || has_word(name, "enum") ||
                    has_word(name, "alignas") || has_word(name, "return");
  return !type;
}

std::string name_of(std::string_view head) {
  const std::size_t open = head.find('(');
  std::size_t from = open;
  while (from > 0 && (std::isalnum(static_cast<unsigned char>(head[from - 1])) != 0 ||
                      head[from - 1] == '_' || head[from - 1] == ':' || head[from - 1] == '~')) {
    --from;
  }
  return std::string(head.substr(from, open - from));
}

enum class Brace { kContainer, kFunction, kExpression };

std::vector<Function> cpp_functions(const SourceFile& file) {
  const std::string code = without_directives(file.code);
  std::vector<Function> functions;
  std::vector<Brace> stack;
  std::size_t head_start = 0;
  int inside = 0;  // braces open within the current function, its own included
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (code[i] == '{' && inside > 0) {
      ++inside;
    } else if (code[i] == '{') {
      const std::string_view head =
          trimmed(std::string_view(code).substr(head_start, i - head_start));
      const bool spaced = i > 0 && std::isspace(static_cast<unsigned char>(code[i - 1])) != 0;
      const bool function = spaced && !head.empty() && opens_function(head);
      if (function) {
        functions.push_back({file.path, name_of(head), line_of(code, i), 0});
        inside = 1;
      }
      const Brace other = spaced ? Brace::kContainer : Brace::kExpression;
      stack.push_back(function ? Brace::kFunction : other);
      head_start = other == Brace::kExpression && !function ? head_start : i + 1;
    } else if (code[i] == '}' && inside > 1) {
      --inside;
    } else if (code[i] == '}' && !stack.empty()) {
      if (inside == 1) {
        inside = 0;
        functions.back().length = line_of(code, i) - functions.back().line + 1;
      }
      head_start = stack.back() == Brace::kExpression ? head_start : i + 1;
      stack.pop_back();
    } else if (code[i] == ';' && inside == 0) {
      head_start = i + 1;
    }
  }
  return functions;
}

std::vector<Function> python_functions(const SourceFile& file) {
  std::vector<Function> functions;
  const auto lines = lines_of(file.code);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t indent = lines[i].find_first_not_of(' ');
    if (indent == std::string_view::npos || !lines[i].substr(indent).starts_with("def ")) {
      continue;
    }
    std::size_t last = i;
    for (std::size_t j = i + 1; j < lines.size(); ++j) {
      const std::size_t depth = lines[j].find_first_not_of(' ');
      if (depth != std::string_view::npos && depth <= indent && lines[j][depth] != ')') {
        break;
      }
      last = depth == std::string_view::npos ? last : j;
    }
    const std::string_view head = lines[i].substr(indent + 4);
    functions.push_back({file.path, std::string(head.substr(0, head.find('('))),
                         static_cast<int>(i) + 1, static_cast<int>(last - i) + 1});
  }
  return functions;
}

int columns_of(std::string_view line) {
  const auto is_start = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
  return static_cast<int>(std::count_if(line.begin(), line.end(), is_start));
}

}  // namespace

std::vector<Function> functions_of(const SourceFile& file) {
  if (file.language == Language::kCpp) {
    return cpp_functions(file);
  }
  return file.language == Language::kPython ? python_functions(file) : std::vector<Function>{};
}

void check_sizes(const SourceFile& file, Violations& violations) {
  if (file.language == Language::kDocument) {
    return;
  }
  const auto lines = lines_of(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (columns_of(lines[i]) > kColumnsMax) {
      violations.push_back({file.path, static_cast<int>(i) + 1, "columns",
                            std::to_string(columns_of(lines[i])) + " columns, at most " +
                                std::to_string(kColumnsMax)});
    }
  }
  if (static_cast<int>(lines.size()) > kFileLinesMax) {
    violations.push_back({file.path, 1, "file",
                          std::to_string(lines.size()) + " lines, at most " +
                              std::to_string(kFileLinesMax) + ": split it"});
  }
  for (const Function& function : functions_of(file)) {
    if (function.length > kFunctionLinesMax) {
      violations.push_back({file.path, function.line, "function",
                            function.name + " has " + std::to_string(function.length) +
                                " lines, at most " + std::to_string(kFunctionLinesMax)});
    }
  }
}

}  // namespace ddprun::style

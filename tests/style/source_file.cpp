#include "tests/style/source_file.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <iterator>
#include <utility>

namespace ddprun::style {
namespace {

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

void blank(std::string& code, std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < std::min(to, code.size()); ++i) {
    if (code[i] != '\n') {
      code[i] = ' ';
    }
  }
}

/// End of a quoted literal whose opening quote is at `at`; stays on one line unless escaped.
std::size_t end_of_literal(std::string_view text, std::size_t at) {
  const char quote = text[at];
  std::size_t i = at + 1;
  while (i < text.size() && text[i] != quote && text[i] != '\n') {
    i += text[i] == '\\' ? 2 : 1;
  }
  return std::min(i, text.size());
}

/// End (offset of the closing quote) of a raw string whose opening quote is at `at`.
std::size_t end_of_raw_literal(std::string_view text, std::size_t at) {
  const std::size_t open = text.find('(', at);
  if (open == std::string_view::npos) {
    return text.size();
  }
  const std::string close = ")" + std::string(text.substr(at + 1, open - at - 1)) + "\"";
  const std::size_t end = text.find(close, open);
  return end == std::string_view::npos ? text.size() : end + close.size() - 1;
}

bool is_digit_separator(std::string_view text, std::size_t at) {
  return at > 0 && at + 1 < text.size() &&
         std::isdigit(static_cast<unsigned char>(text[at - 1])) != 0 && is_name(text[at + 1]);
}

std::string cpp_code(std::string_view text) {
  std::string code(text);
  std::size_t i = 0;
  while (i < text.size()) {
    std::size_t end = i;
    if (text.substr(i, 2) == "//") {
      end = std::min(text.find('\n', i), text.size());
      blank(code, i, end);
    } else if (text.substr(i, 2) == "/*") {
      const std::size_t close = text.find("*/", i + 2);
      end = close == std::string_view::npos ? text.size() : close + 2;
      blank(code, i, end);
    } else if (text[i] == '"' && i > 0 && text[i - 1] == 'R') {
      end = end_of_raw_literal(text, i);
      blank(code, i + 1, end);
    } else if (text[i] == '"' || (text[i] == '\'' && !is_digit_separator(text, i))) {
      end = end_of_literal(text, i);
      blank(code, i + 1, end);
    }
    i = end + (end == i || (end < text.size() && text[end] != '\n') ? 1 : 0);
  }
  return code;
}

/// For Python and shell: comments that start a line or follow a blank, and literals.
std::string script_code(std::string_view text) {
  std::string code(text);
  std::size_t i = 0;
  while (i < text.size()) {
    std::size_t end = i;
    if (text[i] == '#' && (i == 0 || std::isspace(static_cast<unsigned char>(text[i - 1])) != 0)) {
      end = std::min(text.find('\n', i), text.size());
      blank(code, i, end);
    } else if (text.substr(i, 3) == "\"\"\"" || text.substr(i, 3) == "'''") {
      const std::size_t close = text.find(text.substr(i, 3), i + 3);
      end = close == std::string_view::npos ? text.size() : close + 2;
      blank(code, i + 3, end - 2);
    } else if (text[i] == '"' || text[i] == '\'') {
      end = end_of_literal(text, i);
      blank(code, i + 1, end);
    }
    ++end;
    i = end;
  }
  return code;
}

bool starts_with_shebang(const std::string& text, std::string_view program) {
  const std::string first = text.substr(0, text.find('\n'));
  return first.starts_with("#!") && first.find(program) != std::string::npos;
}

Language language_of(const std::string& path, const std::string& text) {
  const std::filesystem::path name(path);
  const std::string extension = name.extension().string();
  static constexpr std::array kCpp{".cpp", ".hpp", ".h", ".c", ".cu"};
  if (std::find(kCpp.begin(), kCpp.end(), extension) != kCpp.end()) {
    return Language::kCpp;
  }
  if (extension == ".py" || starts_with_shebang(text, "python")) {
    return Language::kPython;
  }
  if (extension == ".sh" || starts_with_shebang(text, "sh")) {
    return Language::kShell;
  }
  const bool cmake = extension == ".cmake" || name.filename() == "CMakeLists.txt";
  return cmake ? Language::kCMake : Language::kDocument;
}

bool is_left_out(const std::filesystem::path& relative) {
  static constexpr std::array kLeftOut{"build", "out", "data", "runs", "__pycache__", "corpus"};
  const std::string name = relative.filename().string();
  const bool listed = std::find(kLeftOut.begin(), kLeftOut.end(), name) != kLeftOut.end();
  return (name.starts_with(".") && name != ".ci") || listed;
}

}  // namespace

SourceFile make_source(std::string path, std::string text) {
  SourceFile file;
  file.language = language_of(path, text);
  file.path = std::move(path);
  file.code = file.language == Language::kCpp ? cpp_code(text) : script_code(text);
  file.text = std::move(text);
  return file;
}

std::vector<SourceFile> load_tree(const std::filesystem::path& root) {
  std::vector<SourceFile> files;
  std::filesystem::recursive_directory_iterator walk(root);
  for (auto entry = begin(walk); entry != end(walk); ++entry) {
    const auto relative = std::filesystem::relative(entry->path(), root);
    if (entry->is_directory() && is_left_out(relative)) {
      entry.disable_recursion_pending();
      continue;
    }
    if (!entry->is_regular_file() || relative.filename().string().starts_with(".")) {
      continue;
    }
    std::ifstream stream(entry->path(), std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(stream)), {});
    if (text.find('\0') == std::string::npos) {
      files.push_back(make_source(relative.generic_string(), std::move(text)));
    }
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

int line_of(std::string_view text, std::size_t offset) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(offset, text.size()));
  return 1 + static_cast<int>(std::count(text.begin(), end, '\n'));
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.remove_suffix(1);
  }
  return text;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<std::size_t> find_word(std::string_view text, std::string_view word) {
  std::vector<std::size_t> found;
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t after = at + word.size();
    const bool starts = at == 0 || !is_name(text[at - 1]);
    const bool ends = after >= text.size() || !is_name(text[after]);
    if (starts && ends) {
      found.push_back(at);
    }
  }
  return found;
}

}  // namespace ddprun::style

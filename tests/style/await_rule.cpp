#include <cctype>
#include <string>
#include <string_view>

#include "tests/style/rules.hpp"

namespace ddprun::style {
namespace {

/// What stands between the start of the statement and the co_await.
std::string_view before(std::string_view code, std::size_t at) {
  const std::size_t start = code.substr(0, at).find_last_of(";{}");
  const std::size_t from = start == std::string_view::npos ? 0 : start + 1;
  return trimmed(code.substr(from, at - from));
}

/// The awaited expression, up to the `;` that ends the statement.
std::string_view awaited(std::string_view code, std::size_t at) {
  int depth = 0;
  std::size_t i = at;
  for (; i < code.size(); ++i) {
    const char c = code[i];
    depth += c == '(' || c == '{' || c == '[' ? 1 : 0;
    depth -= c == ')' || c == '}' || c == ']' ? 1 : 0;
    if (depth < 0 || (c == ';' && depth == 0)) {
      break;
    }
  }
  return code.substr(at, i - at);
}

/// Nothing, or `type name =`, `auto [a, b] =`, `name =`; a label or `else` may stand before it.
bool is_allowed_start(std::string_view start) {
  if (start.ends_with(':') && start.find('(') == std::string_view::npos) {
    return true;
  }
  if (start.empty() || start == "else" || start == "do" || start == "try") {
    return true;
  }
  const bool assigns = start.ends_with('=') && !start.ends_with("==") && !start.ends_with("!=") &&
                       !start.ends_with("<=") && !start.ends_with(">=");
  const bool plain = start.find_first_of("(?") == std::string_view::npos &&
                     start.find("&&") == std::string_view::npos &&
                     start.find("||") == std::string_view::npos;
  return assigns && plain;
}

}  // namespace

void check_awaits(const SourceFile& file, Violations& violations) {
  if (file.language != Language::kCpp) {
    return;
  }
  for (const std::size_t at : find_word(file.code, "co_await")) {
    const auto report = [&](std::string sentence) {
      violations.push_back({file.path, line_of(file.code, at), "await", std::move(sentence)});
    };
    if (!is_allowed_start(before(file.code, at))) {
      report("co_await only as a whole statement or as `auto x = co_await f(named);`");
    }
    const std::string_view expression = awaited(file.code, at);
    if (expression.find('{') != std::string_view::npos) {
      report("no braces and no lambda in an awaited expression: name the object first, move it in");
    }
    const bool combined = expression.find("&&") != std::string_view::npos ||
                          expression.find("||") != std::string_view::npos ||
                          expression.find('?') != std::string_view::npos;
    if (combined) {
      report("await operations one by one, not with && || ?");
    }
  }
}

}  // namespace ddprun::style

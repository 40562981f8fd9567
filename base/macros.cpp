#include "base/macros.hpp"

namespace ddprun {

namespace {

bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool continues_name(char c) {
  return starts_name(c) || (c >= '0' && c <= '9');
}

// Length of the name that starts at `begin`; 0 if no name starts there.
std::size_t name_length(const std::string& text, std::size_t begin) {
  if (begin >= text.size() || !starts_name(text[begin])) return 0;
  std::size_t end = begin;
  while (end < text.size() && continues_name(text[end])) ++end;
  return end - begin;
}

}  // namespace

std::string substitute(const std::string& text, const std::map<std::string, std::string>& values) {
  std::string result;
  std::size_t at = 0;
  while (at < text.size()) {
    if (text[at] != '$') {
      result += text[at++];
      continue;
    }
    if (text.compare(at, 2, "$$") == 0) {
      result += '$';
      at += 2;
      continue;
    }
    const bool braced = text.compare(at, 2, "${") == 0;
    const std::size_t name_begin = at + (braced ? 2 : 1);
    const std::size_t length = name_length(text, name_begin);
    const std::size_t end = name_begin + length + (braced ? 1 : 0);
    const bool complete = length > 0 && (!braced || text.compare(end - 1, 1, "}") == 0);
    if (!complete) {
      result += text[at++];
      continue;
    }
    const auto found = values.find(text.substr(name_begin, length));
    result += found == values.end() ? text.substr(at, end - at) : found->second;
    at = end;
  }
  return result;
}

}  // namespace ddprun

#include "agent/proc/line_prefix.hpp"

#include <cctype>
#include <optional>
#include <string_view>

namespace ddprun {
namespace {

std::optional<std::string> value_of(std::string_view name, const LinePrefixMacros& macros) {
  if (name == "role_name") return macros.role_name;
  if (name == "local_rank") return std::to_string(macros.local_rank);
  if (name == "rank") return std::to_string(macros.rank);
  if (name == "hostname") return macros.hostname;
  return std::nullopt;
}

bool starts_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool continues_name(char c) {
  return starts_name(c) || (c >= '0' && c <= '9');
}

std::string_view leading_name(std::string_view text) {
  if (text.empty() || !starts_name(text.front())) return {};
  std::size_t length = 1;
  while (length < text.size() && continues_name(text[length])) ++length;
  return text.substr(0, length);
}

}  // namespace

std::string line_prefix(const std::string& text, const LinePrefixMacros& macros) {
  std::string result;
  for (std::string_view rest = text; !rest.empty();) {
    const auto dollar = rest.find('$');
    result += rest.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    rest.remove_prefix(dollar);
    const std::string_view after = rest.substr(1);
    const bool braced = after.starts_with('{');
    const std::string_view name = leading_name(after.substr(braced ? 1 : 0));
    const std::size_t length = 1 + name.size() + (braced ? 2 : 0);
    const bool closed = !braced || (length <= rest.size() && rest[length - 1] == '}');
    const auto value = closed ? value_of(name, macros) : std::nullopt;
    const std::size_t used = value ? length : (after.starts_with('$') ? 2 : 1);
    result += value ? *value : "$";
    rest.remove_prefix(used);
  }
  return result;
}

}  // namespace ddprun

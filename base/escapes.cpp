#include "base/escapes.hpp"

#include <algorithm>

namespace ddprun {
namespace {

constexpr char kEscape = '\x1b';

/// Up to and with the first byte between `first` and '~' from `from` on.
std::size_t through_final(std::string_view text, std::size_t from, char first) {
  std::size_t at = from;
  while (at < text.size() && (text[at] < first || text[at] > '~')) ++at;
  return std::min(at + 1, text.size());
}

std::size_t through_terminator(std::string_view text) {
  const std::size_t bell = text.find('\a');
  const std::size_t end = text.find("\x1b\\", 2);
  if (bell == std::string_view::npos && end == std::string_view::npos) return text.size();
  return bell < end ? bell + 1 : end + 2;
}

}  // namespace

std::size_t escape_size(std::string_view text) {
  if (text.size() < 2) return text.size();
  const char kind = text[1];
  if (kind == '[') return through_final(text, 2, '@');
  if (std::string_view("]PX^_").find(kind) != std::string_view::npos) {
    return through_terminator(text);
  }
  return kind >= ' ' && kind <= '/' ? through_final(text, 2, '0') : 2;
}

bool is_colour(std::string_view sequence) {
  return sequence.size() > 2 && sequence[1] == '[' && sequence.back() == 'm';
}

std::string without_colours(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const std::size_t before = std::min(text.find(kEscape), text.size());
    plain += text.substr(0, before);
    text.remove_prefix(before);
    const std::string_view sequence = text.substr(0, escape_size(text));
    if (!is_colour(sequence)) plain += sequence;
    text.remove_prefix(sequence.size());
  }
  return plain;
}

}  // namespace ddprun

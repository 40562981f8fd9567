#include "base/printable.hpp"

#include "base/utf8.hpp"

namespace ddprun {
namespace {

/// The code point of one valid UTF-8 character.
unsigned code_point(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return lead;
  unsigned code = lead & (0x7FU >> character.size());
  for (const char next : character.substr(1)) {
    code = (code << 6) | (static_cast<unsigned char>(next) & 0x3FU);
  }
  return code;
}

bool is_visible(unsigned code) {
  if (code == '\t') return true;
  if (code < 0x20 || (code >= 0x7F && code <= 0x9F)) return false;  // C0, DEL, C1
  if (code == 0x061C || code == 0x200E || code == 0x200F) return false;
  if (code >= 0x2028 && code <= 0x202E) return false;  // separators, embeddings, overrides
  return code < 0x2066 || code > 0x2069;               // isolates
}

std::string escaped(unsigned code) {
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = code < 0x80 ? "\\x" : "\\u";
  for (int shift = code < 0x80 ? 4 : 12; shift >= 0; shift -= 4) {
    text += kDigits[(code >> shift) & 0xFU];
  }
  return text;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = character_bytes(text);
    const std::string_view character = text.substr(0, length);
    if (length == 0) {
      line += kReplacement;
    } else if (const unsigned code = code_point(character); is_visible(code)) {
      line += character;
    } else {
      line += escaped(code);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return line;
}

}  // namespace ddprun

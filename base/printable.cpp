#include "base/printable.hpp"

#include <algorithm>

namespace ddprun {

namespace {

constexpr std::string_view kCut = "\xE2\x80\xA6";

[[nodiscard]] unsigned byte_at(std::string_view text, std::size_t index) {
  return index < text.size() ? static_cast<unsigned char>(text[index]) : 0U;
}

}  // namespace

// RFC 3629, table of section 4.
std::size_t character_bytes(std::string_view text) {
  const unsigned lead = byte_at(text, 0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  unsigned low = 0x80;
  unsigned high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  if (byte_at(text, 1) < low || byte_at(text, 1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte_at(text, i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

std::string clean_utf8(std::string_view text, std::size_t bytes_max) {
  std::string clean;
  std::size_t cut_at = 0;  // the longest whole text that leaves room for the mark of a cut
  while (!text.empty()) {
    const std::size_t length = character_bytes(text);
    const std::string_view piece = length == 0 ? kReplacement : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
    if (clean.size() + piece.size() > bytes_max) {
      clean.resize(cut_at);
      if (cut_at + kCut.size() <= bytes_max) clean.append(kCut);
      break;
    }
    clean.append(piece);
    if (clean.size() + kCut.size() <= bytes_max) cut_at = clean.size();
  }
  return clean;
}

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

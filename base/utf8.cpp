#include "base/utf8.hpp"

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

}  // namespace ddprun

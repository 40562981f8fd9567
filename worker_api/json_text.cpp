#include "worker_api/json_text.hpp"

#include <array>
#include <cstddef>
#include <string_view>

namespace ddprun {
namespace {

bool continues(unsigned char byte) {
  return (byte & 0xC0) == 0x80;
}

/// Length of the well-formed UTF-8 sequence at the start of `rest` (Unicode, table 3-7), or 0.
std::size_t sequence_length(std::string_view rest) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(rest[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (rest.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues(at(i))) return 0;
  }
  const unsigned char second = at(1);
  if (lead == 0xE0 && second < 0xA0) return 0;  // overlong
  if (lead == 0xED && second > 0x9F) return 0;  // surrogate
  if (lead == 0xF0 && second < 0x90) return 0;  // overlong
  if (lead == 0xF4 && second > 0x8F) return 0;  // above U+10FFFF
  return length;
}

void append_control(std::string& out, unsigned char byte) {
  static constexpr std::array<char, 17> kDigits{"0123456789abcdef"};
  out += "\\u00";
  out += kDigits[byte >> 4];
  out += kDigits[byte & 0xF];
}

void append_ascii(std::string& out, char byte) {
  switch (byte) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  const auto code = static_cast<unsigned char>(byte);
  if (code < 0x20 || code == 0x7F) {
    append_control(out, code);
  } else {
    out += byte;
  }
}

}  // namespace

std::string json_text(const std::string& bytes) {
  std::string out = "\"";
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const std::size_t length = sequence_length(rest);
    if (length == 0) {
      out += "\xEF\xBF\xBD";  // U+FFFD
    } else if (length == 1) {
      append_ascii(out, rest[0]);
    } else {
      out += rest.substr(0, length);
    }
    rest.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
  return out;
}

}  // namespace ddprun

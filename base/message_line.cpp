#include "base/message_line.hpp"

#include "base/printable.hpp"

namespace ddprun {

namespace {

std::string message_line(std::string_view severity, std::string_view code, std::string_view text) {
  std::string line = "ddprun: " + std::string(severity);
  line += code.empty() ? ": " : " [" + std::string(code) + "] ";
  return line + printable(text);
}

}  // namespace

std::string note_line(std::string_view code, std::string_view text) {
  return message_line("note", code, text);
}

std::string warning_line(std::string_view code, std::string_view text) {
  return message_line("warning", code, text);
}

std::string error_line(std::string_view code, std::string_view text) {
  return message_line("error", code, text);
}

}  // namespace ddprun

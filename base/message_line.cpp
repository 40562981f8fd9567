#include "base/message_line.hpp"

#include "base/printable.hpp"
#include "base/program_name.hpp"

namespace ddprun {

namespace {

std::string message_line(std::string_view severity, std::string_view code, std::string_view text) {
  std::string line = program_name() + ": " + std::string(severity);
  line += code.empty() ? ": " : " [" + std::string(code) + "] ";
  return line + printable(text);
}

}  // namespace

std::size_t own_error_prefix(std::string_view line) {
  for (const std::string_view name : kProgramNames) {
    if (!line.starts_with(name)) continue;
    if (line.substr(name.size()).starts_with(": error [")) return name.size() + 2;
  }
  return 0;
}

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

#include "launcher/commands/terminal.hpp"

#include <string.h>
#include <unistd.h>

#include "base/message_line.hpp"
#include "base/write_all.hpp"
#include "launcher/commands/table.hpp"

namespace ddprun::commands {

namespace {

constexpr int kUsageCode = 2;

void print_message(const std::string& line) {
  static_cast<void>(write_all(STDERR_FILENO, line + "\n"));  // no other place is left to say so
}

}  // namespace

int print(const std::string& text) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error == 0) return kCommandDone;
  return fail(std::string("cannot write to standard output: ") + ::strerror(error));
}

void note(const std::string& sentence) {
  print_message(note_line("", sentence));
}

int fail(const std::string& sentence, const std::string& code) {
  print_message(error_line(code, sentence));
  return kCommandFailed;
}

int misuse(const std::string& sentence) {
  print_message(error_line("USAGE", sentence));
  return kUsageCode;
}

}  // namespace ddprun::commands

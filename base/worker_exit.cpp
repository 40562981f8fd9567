#include "base/worker_exit.hpp"

#include "base/exit_code.hpp"

namespace ddprun {

int exit_code_of_run(const ExitStatus& first_failure) {
  return first_failure.success() ? kExitFailure : first_failure.shell_code();
}

bool is_first_failure(const ExitOrder& exit, const std::optional<TimePoint>& first) {
  if (exit.status.success() || exit.sent_signal != 0) return false;
  return !first || exit.at < *first;
}

namespace {

/// With one '#' for each number.
std::string without_numbers(std::string_view line) {
  std::string text;
  bool in_number = false;
  for (const char one : line) {
    const bool digit = one >= '0' && one <= '9';
    if (!digit || !in_number) text += digit ? '#' : one;
    in_number = digit;
  }
  return text;
}

}  // namespace

bool is_alike(const ExitStatus& status, std::string_view last_line, const ExitStatus& other,
              std::string_view other_line) {
  if (status != other || last_line.empty() || other_line.empty()) return false;
  return without_numbers(last_line) == without_numbers(other_line);
}

}  // namespace ddprun

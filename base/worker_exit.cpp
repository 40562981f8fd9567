#include "base/worker_exit.hpp"

#include "base/ending.hpp"
#include "base/exit_status.hpp"

namespace ddprun {

int exit_code_of_run(const ExitStatus& first_failure) {
  return first_failure.success() ? kExitFailure : first_failure.shell_code();
}

bool is_first_failure(const ExitOrder& exit, const std::optional<TimePoint>& first) {
  if (exit.status.success() || exit.sent_signal != 0) return false;
  return !first || exit.at < *first;
}

std::string telling_line(const WorkerExit& exit) {
  if (exit.given_up) return exit.given_up->text;
  return std::string(telling_line(views_of(exit.lines)));
}

std::string likeness_of(const WorkerExit& exit) {
  return exit.given_up ? exit.given_up->text : likeness_of(views_of(exit.lines));
}

bool is_alike(const ExitStatus& status, std::string_view likeness, const ExitStatus& other,
              std::string_view other_likeness) {
  if (status != other || likeness.empty() || other_likeness.empty()) return false;
  return shape_of(likeness) == shape_of(other_likeness);
}

}  // namespace ddprun

#include "launcher/front/background.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "base/exit_status.hpp"
#include "base/process_setup.hpp"

namespace ddprun::front {

namespace {

constexpr std::size_t kLineBytesMax = 4096;

pid_t background_pid = 0;  // for the handler

extern "C" void pass_to_background(int number) {
  ::kill(background_pid, number);
}

void become_background(int console) {
  ::setsid();
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(console, STDOUT_FILENO);
  ::dup2(console, STDERR_FILENO);
  if (nothing > STDERR_FILENO) ::close(nothing);
  if (console > STDERR_FILENO) ::close(console);
}

std::string first_line(int pipe) {
  std::string line;
  std::array<char, 256> piece{};
  while (line.size() < kLineBytesMax && line.find('\n') == std::string::npos) {
    const ssize_t count = ::read(pipe, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return {};
    line.append(piece.data(), static_cast<std::size_t>(count));
  }
  return line.substr(0, line.find('\n'));
}

int wait_for(pid_t process) {
  siginfo_t info = {};
  while (::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED) != 0) {
    if (errno != EINTR) return 1;
  }
  return ExitStatus::from_siginfo(info.si_code, info.si_status).shell_code();
}

}  // namespace

Background go_to_background(int console) {
  std::array<int, 2> pipe{};
  Background result;
  result.is_parent = true;
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return result;
  background_pid = ::fork();
  if (background_pid < 0) return result;
  if (background_pid == 0) {
    ::close(pipe[0]);
    become_background(console);
    result.is_parent = false;
    result.started = pipe[1];
    return result;
  }
  result.process = background_pid;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const bool ignored = ::sigismember(&ignored_at_start(), number) == 1;
    if (!ignored) ::signal(number, pass_to_background);
  }
  ::close(pipe[1]);
  ::close(console);
  result.line = first_line(pipe[0]);
  if (result.line.empty()) result.exit_code = wait_for(background_pid);
  return result;
}

}  // namespace ddprun::front

// `ddprun signal`, `ddprun stacks` and `ddprun stop`.
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "base/exit_status.hpp"
#include "launcher/commands/commands.hpp"
#include "launcher/commands/descriptor.hpp"
#include "launcher/commands/runs.hpp"
#include "launcher/commands/table.hpp"
#include "launcher/commands/terminal.hpp"
#include "launcher/options/values.hpp"

namespace ddprun::commands {

namespace {

/// "USR1", "SIGUSR1", "usr1" or "10"; 0: none of them.
int parse_signal(const std::string& word) {
  const auto number = parse_integer(word);
  if (number) return *number >= 1 && *number < NSIG ? static_cast<int>(*number) : 0;
  std::string name = word;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char one) { return static_cast<char>(std::toupper(one)); });
  return signal_number(name.starts_with("SIG") ? name : "SIG" + name);
}

/// Without a deadline: a run has its own --shutdown-timeout, and Ctrl-C ends the wait.
void wait_for_end(int pidfd) {
  pollfd ended{pidfd, POLLIN, 0};
  while (::poll(&ended, 1, -1) < 0) {
  }
}

}  // namespace

int signal(const Arguments& arguments, const Environment& environment) {
  if (arguments.size() != 2) return misuse("ddprun signal takes a run and a signal");
  const int number = parse_signal(arguments.back());
  if (number == 0) return misuse("there is no signal " + arguments.back());
  const auto run = find_run(arguments.front(), environment);
  if (!run) return fail(run.error().sentence);
  const auto done = ask(*run, {control::Command::kSignal, number});
  if (!done) return fail(done.error().sentence);
  return print(*done + "\n");
}

int stacks(const Arguments& arguments, const Environment& environment) {
  if (arguments.size() != 1) return misuse("ddprun stacks takes one run");
  const auto run = find_run(arguments.front(), environment);
  if (!run) return fail(run.error().sentence);
  const auto done = ask(*run, {control::Command::kStacks});
  if (!done) return fail(done.error().sentence);
  return print(*done + "\n");
}

int stop(const Arguments& arguments, const Environment& environment) {
  Arguments names = arguments;
  const bool waits = std::erase(names, "--no-wait") == 0;
  if (names.size() != 1) return misuse("ddprun stop takes one run: ddprun stop RUN [--no-wait]");
  const auto run = find_run(names.front(), environment);
  if (!run) return fail(run.error().sentence);
  const auto pid = static_cast<pid_t>(number_in(run->status, "pid"));
  // Before the request: afterwards another process may have its pid.
  const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const auto done = ask(*run, {control::Command::kStop});
  if (!done) return fail(done.error().sentence);
  if (waits && process.get() >= 0) wait_for_end(process.get());
  return print("run " + text_in(run->status, "run_id") +
               (waits ? " has ended\n" : " is stopping\n"));
}

}  // namespace ddprun::commands

// ddprun-stacks SECONDS PID...: prints the native stacks of processes, which continue afterwards.
// The agent runs it as a program of its own, so that an unwinder that crashes or hangs costs
// nothing. One child per process, killed by its own alarm. Each line: F, pid, thread, function,
// module; or E, pid and why stacks are missing; tabs between them. Exit 0 however much is missing,
// 2: wrong use.
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "agent/proc/native_stacks/unwinder.hpp"

namespace {

using ddprun::native_stacks::Frame;
using ddprun::native_stacks::Outcome;

constexpr std::size_t kNameBytesMax = 160;

/// Names come from files of the other process: a line stays a line.
std::string cleaned(std::string_view name) {
  std::string text(name.substr(0, kNameBytesMax));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, '?');
  if (name.size() > kNameBytesMax) text += "...";
  return text;
}

/// In one write(), which a pipe does not mix with another child's.
void print(const std::string& line) {
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) ::_exit(1);
}

void print_missing(pid_t process, const char* why) {
  print("E\t" + std::to_string(process) + "\t" + why + "\n");
}

const char* text_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kDone:
      return nullptr;
    case Outcome::kGone:
      return "gone";
    case Outcome::kDenied:
      return "denied";
    case Outcome::kUnsupported:
      return "unsupported";
  }
  return "unsupported";
}

[[noreturn]] void unwind_in_child(pid_t process, double seconds) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto whole = static_cast<time_t>(seconds);
  const itimerval limit{{0, 0},
                        {whole, static_cast<suseconds_t>((seconds - double(whole)) * 1e6) + 1}};
  ::setitimer(ITIMER_REAL, &limit, nullptr);
  const auto outcome =
      ddprun::native_stacks::unwind(process, [process](pid_t thread, const Frame& frame) {
        print("F\t" + std::to_string(process) + "\t" + std::to_string(thread) + "\t" +
              cleaned(frame.function) + "\t" + cleaned(frame.module) + "\n");
      });
  if (const char* why = text_of(outcome)) print_missing(process, why);
  ::_exit(0);
}

void reap(std::map<pid_t, pid_t>& children) {
  int status = 0;
  const pid_t child = ::wait(&status);
  const auto ended = children.find(child);
  if (ended == children.end()) return;
  if (WIFSIGNALED(status)) {
    print_missing(ended->second, WTERMSIG(status) == SIGALRM ? "late" : "failed");
  }
  children.erase(ended);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 2 ? std::atof(argv[1]) : 0;
  if (seconds <= 0 || seconds > 60) {
    ::fputs("usage: ddprun-stacks SECONDS PID...\n", stderr);
    return 2;
  }
  const auto at_once =
      static_cast<std::size_t>(std::clamp(::sysconf(_SC_NPROCESSORS_ONLN), 2L, 16L));
  std::map<pid_t, pid_t> children;  // by pid: whose stacks it reads
  for (int at = 2; at < argc; ++at) {
    const pid_t process = std::atoi(argv[at]);
    if (process <= 0) continue;
    while (children.size() >= at_once) reap(children);
    const pid_t child = ::fork();
    if (child == 0) unwind_in_child(process, seconds);
    if (child < 0) {
      print_missing(process, "failed");
    } else {
      children.emplace(child, process);
    }
  }
  while (!children.empty()) reap(children);
  return 0;
}

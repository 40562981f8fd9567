// `ddprun attach RUN`: follows the files that the run's standard output and standard error are.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/descriptor.hpp"
#include "base/message_line.hpp"
#include "launcher/commands/commands.hpp"
#include "launcher/commands/runs.hpp"

namespace ddprun::commands {

namespace {

constexpr off_t kShownFirst = 65536;  // bytes of what was written before
constexpr std::array<int, 2> kShownOn{STDOUT_FILENO, STDERR_FILENO};

/// One file that is followed.
struct Followed {
  Followed(int descriptor, int shown_on) : file(descriptor), target(shown_on) {}
  Descriptor file;
  int target;
  struct stat facts = {};
};
using Files = std::vector<std::unique_ptr<Followed>>;

bool is_same(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/// Standard output and standard error of `pid` that are files; one of them if both are the same.
Files open_consoles_of(std::int64_t pid) {
  Files files;
  for (const int number : kShownOn) {
    const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(number);
    struct stat facts = {};
    if (::stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) continue;
    const bool known = std::any_of(files.begin(), files.end(),
                                   [&](const auto& one) { return is_same(one->facts, facts); });
    if (known) continue;
    auto file = std::make_unique<Followed>(::open(path.c_str(), O_RDONLY | O_CLOEXEC), number);
    if (file->file.number() < 0) continue;
    file->facts = facts;
    ::lseek(file->file.number(), std::max<off_t>(0, facts.st_size - kShownFirst), SEEK_SET);
    files.push_back(std::move(file));
  }
  return files;
}

/// Whether what this command shows would be appended to one of the files, which it would show
/// again.
bool writes_into(const Files& files) {
  return std::any_of(files.begin(), files.end(), [](const auto& one) {
    struct stat shown_on = {};
    return std::any_of(kShownOn.begin(), kShownOn.end(), [&](int number) {
      return ::fstat(number, &shown_on) == 0 && is_same(one->facts, shown_on);
    });
  });
}

/// Copies what is there. Returns 0 or errno.
int show_more(const Files& files) {
  std::vector<char> piece(static_cast<std::size_t>(kShownFirst));
  for (const auto& one : files) {
    for (;;) {
      const ssize_t count = ::read(one->file.number(), piece.data(), piece.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return errno;
      if (count == 0) break;
      const std::string text(piece.data(), static_cast<std::size_t>(count));
      const int error = write_all(one->target, text);
      if (error != 0) return error;
    }
  }
  return 0;
}

/// Until the process has ended: a run has no deadline.
int follow(const Files& files, int changes, int process) {
  std::array<char, 4096> told{};
  for (;;) {
    const int error = show_more(files);
    if (error != 0) return error;
    std::array<pollfd, 2> wait{{{changes, POLLIN, 0}, {process, POLLIN, 0}}};
    if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) return errno;
    if (wait[1].revents != 0) return show_more(files);
    if (wait[0].revents != 0 && ::read(changes, told.data(), told.size()) < 0) return errno;
  }
}

}  // namespace

int attach(const Arguments& arguments, const Environment& environment) {
  if (arguments.size() != 1) return misuse("ddprun attach takes one run: ddprun attach RUN");
  const auto run = find_run(arguments.front(), environment);
  if (!run) return fail(run.error().sentence);
  const std::int64_t pid = number_in(run->status, "pid");
  if (pid == 0) return fail_silent(*run, arguments.front());
  const std::string name = "run " + text_in(run->status, "run_id");
  const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0)));
  if (process.number() < 0) return fail(name + " has ended");
  const Files files = open_consoles_of(pid);
  if (files.empty()) {
    return fail(name +
                " writes to a terminal or a pipe, which no other process can read; attach shows "
                "runs whose output is in a file: ddprun --detach, nohup, a batch job");
  }
  if (writes_into(files)) {
    return fail(name +
                " writes to the file that the output of this command goes to, which would "
                "show itself; redirect ddprun attach elsewhere");
  }
  const Descriptor changes(::inotify_init1(IN_CLOEXEC));
  for (const auto& one : files) {
    const std::string path = "/proc/self/fd/" + std::to_string(one->file.number());
    if (::inotify_add_watch(changes.number(), path.c_str(), IN_MODIFY) < 0) {
      return fail("cannot watch the output of " + name + ": " + ::strerror(errno));
    }
  }
  const std::string note =
      note_line("ATTACH", name + " (pid " + std::to_string(pid) + "); Ctrl-C detaches");
  static_cast<void>(write_all(STDERR_FILENO, note + "\n"));  // the output is what matters
  if (!run->answered) commands::note(silence_text(*run, arguments.front(), ""));
  const int error = follow(files, changes.number(), process.number());
  return error == 0 ? kCommandDone : fail("cannot show " + name + ": " + ::strerror(error));
}

}  // namespace ddprun::commands

#include "agent/warm/processes.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "agent/proc/process_facts.hpp"
#include "agent/proc/process_table.hpp"
#include "agent/proc/program.hpp"

namespace ddprun::warm {

Duration Processor::starved(const Processor& before, Duration since) const {
  const Duration had = ready ? since - (ran - before.ran) : waited - before.waited;
  return std::clamp(had, Duration(0), since);
}

// "RAN WAITED SLICES", in ns; the kernel counts a wait when it ends.
Processor processor_of(pid_t process) {
  const std::string text = read_proc(process, "schedstat");
  const char* const end = text.data() + text.size();
  long long ran = 0;
  long long waited = 0;
  const auto first = std::from_chars(text.data(), end, ran);
  if (first.ec != std::errc() || first.ptr == end) return {};
  if (std::from_chars(first.ptr + 1, end, waited).ec != std::errc()) return {};
  const auto entry = find_process(process);
  return {std::chrono::nanoseconds(ran), std::chrono::nanoseconds(waited),
          entry && entry->state == 'R'};
}

bool has_ready_member(pid_t session) {
  const auto below = processes_below({session}, kProcessesBelowMax);
  return std::any_of(below.begin(), below.end(), [session](const ProcessEntry& one) {
    return one.session == session && one.pid != session && one.state == 'R';
  });
}

namespace {

std::string limits_text() {
  std::string text;
  for (int resource = 0; resource < static_cast<int>(RLIM_NLIMITS); ++resource) {
    rlimit limit = {};
    ::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
    text += std::to_string(limit.rlim_cur) + "/" + std::to_string(limit.rlim_max) + " ";
  }
  return text;
}

/// The value of a line such as "Umask:\t0022" in /proc/self/status.
std::string status_of(const std::string& status, const std::string& name) {
  const auto at = status.find("\n" + name + ":");
  if (at == std::string::npos) return {};
  const auto begin = at + name.size() + 2;
  return status.substr(begin, status.find('\n', begin) - begin);
}

std::string file_text(const std::string& path) {
  struct stat facts = {};
  if (::stat(path.c_str(), &facts) != 0) return "-";
  return std::to_string(facts.st_dev) + " " + std::to_string(facts.st_ino) + " " +
         std::to_string(facts.st_size) + " " + std::to_string(facts.st_mtim.tv_sec) + "." +
         std::to_string(facts.st_mtim.tv_nsec);
}

}  // namespace

std::map<std::string, std::string> read_inherited(const std::string& program, int stdout_fd,
                                                  int stderr_fd) {
  const auto kind = [](int stream) {
    return ::lseek(stream, 0, SEEK_CUR) >= 0 ? kSeekable : "not seekable";
  };
  const std::string status = read_proc(::getpid(), "status");
  std::error_code unknown;
  return {{kStandardOutput, kind(stdout_fd)},
          {kStandardError, kind(stderr_fd)},
          {"working directory", std::filesystem::current_path(unknown).string()},
          {"umask", status_of(status, "Umask")},
          {"limits", limits_text()},
          {"processors", status_of(status, "Cpus_allowed") + status_of(status, "Mems_allowed")},
          {"user", std::to_string(::getuid()) + ":" + std::to_string(::getgid()) +
                       status_of(status, "Groups")},
          {"interpreter", file_text(program)}};
}

Result<void> check_binary(const std::string& program) {
  const int file = ::open(program.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return system_refused("cannot open " + program, errno);
  std::array<char, 4> begin{};
  const ssize_t bytes = ::read(file, begin.data(), begin.size());
  ::close(file);
  if (bytes == 4 && std::string_view(begin.data(), begin.size()) ==
                        "\x7f"
                        "ELF")
    return {};
  return Error{ErrorKind::kSystem, program + " is a script"};
}

}  // namespace ddprun::warm

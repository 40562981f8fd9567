#include "base/pipe_end.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <string_view>

namespace ddprun {

namespace {

constexpr std::string_view kForkServer = "forkserver import main";
constexpr std::array<std::string_view, 3> kWords{"resource_tracker import main", kForkServer,
                                                 "torch_shm_manager"};

using CommandLine = std::array<char, 4096>;

/// The beginning of /proc/PID/cmdline.
std::string_view read_command_line(pid_t process, CommandLine& buffer) {
  constexpr std::string_view kProc = "/proc/";
  constexpr std::string_view kFile = "/cmdline";
  std::array<char, 32> path{};
  char* at = std::copy(kProc.begin(), kProc.end(), path.begin());
  at = std::to_chars(at, path.end(), process).ptr;
  std::copy(kFile.begin(), kFile.end(), at);
  const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t bytes = ::read(file, buffer.data(), buffer.size());
  ::close(file);
  return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))};
}

bool has(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

}  // namespace

bool ends_with_its_pipe(pid_t process, pid_t parent) {
  CommandLine buffer;
  const std::string_view line = read_command_line(process, buffer);
  const bool any = std::any_of(kWords.begin(), kWords.end(),
                               [line](std::string_view word) { return has(line, word); });
  if (!any || !has(line, kForkServer)) return any;
  return !has(read_command_line(parent, buffer), kForkServer);
}

}  // namespace ddprun

// is_dumped(): whether a core dump of this process would contain some bytes.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include "tests/support/catch.hpp"

namespace ddprun::test {

/// A private page-aligned buffer that is not dumped, so that the search does not find itself.
class SearchRoom {
 public:
  SearchRoom()
      : bytes_(static_cast<char*>(
            ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    REQUIRE(::madvise(bytes_, kBytes, MADV_DONTDUMP) == 0);
  }
  ~SearchRoom() { ::munmap(bytes_, kBytes); }
  SearchRoom(const SearchRoom&) = delete;
  SearchRoom& operator=(const SearchRoom&) = delete;

  /// Whether the memory from `begin` to `end` has `needle`; what cannot be read has not.
  bool finds(int memory, std::uintptr_t begin, std::uintptr_t end, std::string_view needle) {
    while (begin < end) {
      const std::size_t wanted = std::min<std::uintptr_t>(kBytes, end - begin);
      const ssize_t count = ::pread(memory, bytes_, wanted, static_cast<off_t>(begin));
      if (count <= 0) return false;
      if (std::string_view(bytes_, static_cast<std::size_t>(count)).find(needle) !=
          std::string_view::npos) {
        return true;
      }
      // The pieces overlap, for a needle across their border.
      const auto step = static_cast<std::size_t>(count) < kBytes ? count : count - 4096;
      begin += static_cast<std::uintptr_t>(step);
    }
    return false;
  }

 private:
  static constexpr std::size_t kBytes = 1024 * 1024;
  char* bytes_;
};

inline bool is_dumped(std::string_view needle) {
  SearchRoom room;
  const int memory = ::open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  REQUIRE(memory >= 0);
  std::ifstream maps("/proc/self/smaps");
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool found = false;
  for (std::string line; !found && std::getline(maps, line);) {
    const auto dash = line.find('-');
    const auto blank = line.find(' ');
    if (dash != std::string::npos && dash < blank && line.find(':') > blank) {
      begin = std::stoull(line.substr(0, dash), nullptr, 16);
      end = std::stoull(line.substr(dash + 1, blank - dash - 1), nullptr, 16);
    }
    const bool flags = line.starts_with("VmFlags:");
    if (!flags || line.find(" dd") != std::string::npos) continue;
    if (line.find(" rd") == std::string::npos) continue;
    found = room.finds(memory, begin, end, needle);
  }
  ::close(memory);
  return found;
}

}  // namespace ddprun::test

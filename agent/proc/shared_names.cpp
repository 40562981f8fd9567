#include "agent/proc/shared_names.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <utility>

namespace ddprun {
namespace {

constexpr std::size_t kNamesMax = 4096;

/// None: there are more than kNamesMax, which other users may have made.
std::optional<std::set<std::string>> names_in(const std::string& directory) {
  std::set<std::string> names;
  std::size_t looked = 0;
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::opendir(directory.c_str()), ::closedir);
  if (list == nullptr) return names;
  while (const dirent* item = ::readdir(list.get())) {
    if (++looked > kNamesMax) return std::nullopt;
    if (item->d_type == DT_REG) names.insert(item->d_name);
  }
  return names;
}

/// A process that opens the file meanwhile waits for the lease to end, and the kernel signals this
/// one: with SIGIO, which would end it, if not told to use a signal that is ignored.
bool is_open_elsewhere(int file) {
  if (::fcntl(file, F_SETSIG, SIGURG) != 0) return true;
  return ::fcntl(file, F_SETLEASE, F_WRLCK) != 0;
}

}  // namespace

SharedNames::SharedNames(std::string directory)
    : directory_(std::move(directory)), before_(names_in(directory_)) {}

SharedNames::Left SharedNames::left() const {
  Left left;
  const auto now = names_in(directory_);
  if (!before_ || !now) return left;
  for (const std::string& name : *now) {
    if (before_->contains(name)) continue;
    const std::string path = directory_ + "/" + name;
    const int file = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) continue;
    struct stat facts = {};
    const bool is_own = ::fstat(file, &facts) == 0 && facts.st_uid == ::geteuid();
    if (is_own && !is_open_elsewhere(file)) {
      constexpr std::int64_t kBlock = 512;
      left.names.push_back(name);
      left.bytes += facts.st_blocks * kBlock;
    }
    ::close(file);
  }
  return left;
}

}  // namespace ddprun

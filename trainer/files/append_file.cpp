#include "trainer/files/append_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "trainer/error.hpp"

namespace ddprun::trainer {

AppendFile::AppendFile(const std::filesystem::path& path)
    : path_(path),
      descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (!descriptor_.open()) {
    const std::string why = std::strerror(errno);  // before anything else can set errno
    throw TrainerError("cannot open " + path.string() + " for appending: " + why);
  }
}

void AppendFile::append(std::string_view record) {
  const std::size_t size = record.size();
  while (!record.empty()) {
    const ssize_t written = ::write(descriptor_.number(), record.data(), record.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      take_back(size - record.size());
      throw TrainerError("cannot append to " + path_.string() + ": " + std::strerror(error) +
                         "; free some space there or choose another folder");
    }
    record.remove_prefix(static_cast<std::size_t>(written));
  }
}

void AppendFile::take_back(std::size_t bytes) const {
  struct stat status {};
  if (bytes == 0 || ::fstat(descriptor_.number(), &status) != 0) return;
  // If this fails too, a partial record remains; readers drop it, as after a kill.
  (void)!::ftruncate(descriptor_.number(), status.st_size - static_cast<off_t>(bytes));
}

bool AppendFile::empty() const {
  struct stat status {};
  return ::fstat(descriptor_.number(), &status) == 0 && status.st_size == 0;
}

}  // namespace ddprun::trainer

#include "trainer/files/atomic_file.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <system_error>

#include "trainer/error.hpp"
#include "trainer/files/descriptor.hpp"

namespace ddprun::trainer {
namespace {

namespace fs = std::filesystem;

std::string temporary_prefix(const fs::path& path) {
  return "." + path.filename().string() + ".tmp-";
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

[[noreturn]] void refuse(const fs::path& path, int error) {
  throw TrainerError(
      "cannot write " + path.string() + ": " + std::strerror(error) +
      " (the old file is unchanged); free some space there or choose another folder");
}

/// Unlinks the temporary file unless it was renamed.
class Temporary {
 public:
  explicit Temporary(fs::path path) : path_(std::move(path)) {}
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  [[nodiscard]] const fs::path& path() const { return path_; }
  void keep() { path_.clear(); }

 private:
  fs::path path_;
};

Descriptor create(const fs::path& temporary) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  int number = ::open(temporary.c_str(), kFlags, 0644);
  if (number < 0 && errno == EEXIST) {  // left by a killed process with the same pid
    ::unlink(temporary.c_str());
    number = ::open(temporary.c_str(), kFlags, 0644);
  }
  return Descriptor(number);
}

/// Returns 0 or an errno value.
int write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

int sync_folder(const fs::path& folder) {
  const Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.open()) return errno;
  // Some file systems cannot sync a folder and return EINVAL, which is not an error.
  return ::fsync(directory.number()) == 0 || errno == EINVAL ? 0 : errno;
}

}  // namespace

void write_file_atomically(const fs::path& path, const Pieces& pieces) {
  const fs::path folder = folder_of(path);
  Temporary temporary(folder / (temporary_prefix(path) + std::to_string(::getpid())));
  {
    const Descriptor file = create(temporary.path());
    if (!file.open()) refuse(path, errno);
    for (const auto& piece : pieces) {
      if (const int error = write_all(file.number(), piece); error != 0) refuse(path, error);
    }
    if (::fsync(file.number()) != 0) refuse(path, errno);
  }
  if (::rename(temporary.path().c_str(), path.c_str()) != 0) refuse(path, errno);
  temporary.keep();
  if (const int error = sync_folder(folder); error != 0) {
    throw TrainerError("wrote " + path.string() + " but could not sync its folder: " +
                       std::strerror(error) + "; a power failure now may restore the old file");
  }
}

void remove_abandoned_temporaries(const fs::path& path) noexcept {
  try {
    const std::string prefix = temporary_prefix(path);
    std::error_code ignored;  // if the folder cannot be listed, leave its files
    for (const auto& entry : fs::directory_iterator(folder_of(path), ignored)) {
      if (entry.path().filename().string().starts_with(prefix)) fs::remove(entry.path(), ignored);
    }
  } catch (const std::exception&) {
    return;  // out of memory or an unreadable entry: leave the files
  }
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw TrainerError("cannot create the folder " + folder.string() + ": " + error.message() +
                       "; choose another one");
  }
}

}  // namespace ddprun::trainer

#include "launcher/home_secret.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "base/printable.hpp"
#include "base/write_all.hpp"

namespace ddprun {

namespace {

constexpr std::size_t kRandomBytes = 32;

Error failed(const std::string& what, const std::string& path, int error) {
  return {ErrorKind::kSystem, what + " " + printable(path) + ": " + ::strerror(error)};
}

std::string hexadecimal(const std::array<unsigned char, kRandomBytes>& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

Result<void> make_directories(const std::filesystem::path& directory) {
  if (directory.empty() || ::access(directory.c_str(), F_OK) == 0) return {};
  auto above = make_directories(directory.parent_path());
  if (!above) return above;
  const bool made = ::mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST;
  return made ? Result<void>() : failed("cannot make", directory.string(), errno);
}

}  // namespace

std::string home_secret_path(const Environment& environment) {
  const std::string config = value_or(environment, "XDG_CONFIG_HOME", "");
  if (config.starts_with('/')) return config + "/ddprun/secret";
  const std::string home = value_or(environment, "HOME", "");
  return home.starts_with('/') ? home + "/.config/ddprun/secret" : "";
}

Result<SharedSecret> read_home_secret(const Environment& environment) {
  const std::string path = home_secret_path(environment);
  if (path.empty() || (::access(path.c_str(), F_OK) != 0 && errno != EACCES)) {
    return SharedSecret();
  }
  return read_secret(path, path);
}

Result<std::string> make_home_secret(const Environment& environment) {
  const std::string path = home_secret_path(environment);
  if (path.empty()) {
    return Error(ErrorKind::kUsage, "there is no home directory for a secret: HOME is not set");
  }
  auto made = make_directories(std::filesystem::path(path).parent_path());
  if (!made) return made.error();
  std::array<unsigned char, kRandomBytes> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return failed("no random bytes for", path, errno);
  }
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0 && errno == EEXIST) {
    return Error(ErrorKind::kUsage, printable(path) +
                                        " exists: runs use it; remove it first where a new one is "
                                        "wanted, when no run of it is left");
  }
  if (file < 0) return failed("cannot make", path, errno);
  std::string text = hexadecimal(bytes) + "\n";
  const bool written =
      ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fsync(file) == 0;
  const int error = errno;
  ::explicit_bzero(text.data(), text.size());
  ::explicit_bzero(bytes.data(), bytes.size());
  ::close(file);
  if (written) return path;
  ::unlink(path.c_str());
  return failed("cannot write", path, error);
}

}  // namespace ddprun

#include "launcher/agreed_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <sstream>

#include "base/printable.hpp"
#include "launcher/usage.hpp"
#include "launcher/write_text.hpp"

namespace ddprun {
namespace {

constexpr const char* kHeading = "# ddprun: the coordinator of each run id\n";
constexpr std::size_t kBytesMax = 1024 * 1024;

Error of_file(const std::string& path, const std::string& what) {
  return usage("the file of the rendezvous, " + printable(path) + ", " + what);
}

/// Closing it unlocks it.
class OpenFile {
 public:
  OpenFile(const std::string& path, Agree agree)
      : number_(::open(
            path.c_str(),
            (agree == Agree::kLook ? O_RDWR : O_RDWR | O_CREAT) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
            0600)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool is_regular() const {
    struct stat facts = {};
    return ::fstat(number_, &facts) == 0 && S_ISREG(facts.st_mode);
  }
  [[nodiscard]] std::string text() const {
    std::string all;
    std::array<char, 4096> bytes{};
    while (all.size() < kBytesMax) {
      const ssize_t count =
          ::pread(number_, bytes.data(), bytes.size(), static_cast<off_t>(all.size()));
      if (count <= 0) break;
      all.append(bytes.data(), static_cast<std::size_t>(count));
    }
    return all;
  }

 private:
  int number_;
};

/// Else errno says why not.
bool may_create(const std::string& path) {
  const std::string::size_type slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  return ::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
}

std::optional<std::string> line_of(const std::string& key, const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);  // the heading
  while (std::getline(lines, line)) {
    if (line.starts_with(key + " ")) return line.substr(key.size() + 1);
  }
  return std::nullopt;
}

}  // namespace

Result<std::string> agree_on_line(const std::string& path, const std::string& key,
                                  const std::string& line, Agree agree) {
  const OpenFile file(path, agree);
  if (file.number() < 0 && errno == ENOENT && agree == Agree::kLook && may_create(path)) return "";
  if (file.number() < 0)
    return of_file(path, std::string("cannot be opened: ") + ::strerror(errno));
  if (!file.is_regular()) return of_file(path, "is not a regular file");
  // Without a deadline: an agent that holds the lock only reads and writes some bytes.
  const int lock = agree == Agree::kLook ? LOCK_SH : LOCK_EX;  // over NFS as the file was opened
  while (::flock(file.number(), lock) != 0) {
    if (errno != EINTR) return of_file(path, std::string("cannot be locked: ") + ::strerror(errno));
  }
  const std::string text = file.text();
  if (!text.empty() && !text.starts_with(kHeading)) {
    return of_file(path,
                   "belongs to another program, torchrun perhaps: remove it, or pass another");
  }
  if (auto found = line_of(key, text)) return std::move(*found);
  if (agree == Agree::kLook) return "";
  const std::string added = (text.empty() ? kHeading : "") + key + " " + line + "\n";
  if (::lseek(file.number(), 0, SEEK_END) < 0) {
    return of_file(path, std::string("cannot be written: ") + ::strerror(errno));
  }
  const int error = write_text(file.number(), added);
  if (error == 0) return line;
  return of_file(path, std::string("cannot be written: ") + ::strerror(error));
}

}  // namespace ddprun

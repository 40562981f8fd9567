#include "launcher/machine/machine.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include "base/descriptor.hpp"
#include "base/printable.hpp"
#include "launcher/options/values.hpp"

namespace ddprun {
namespace {

constexpr const char* kHeading = "# ddprun: the coordinator of each run id\n";
constexpr std::size_t kBytesMax = 1024 * 1024;
constexpr int kTimesMax = 8;  // a file that others make and remove meanwhile
constexpr std::chrono::milliseconds kLockPause(10);

Error of_file(const std::string& path, const std::string& what) {
  return usage("the file of the rendezvous, " + printable(path) + ", " + what);
}

std::string folder_of(const std::string& path) {
  const std::string::size_type slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// A link in a folder where others may write can lead anywhere: nothing is made where one leads.
// Another node may make the file at the same time.
int open_or_make(const std::string& path, Agree agree) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  for (int time = 0; time < kTimesMax; ++time) {
    const int there = ::open(path.c_str(), kFlags);
    if (there >= 0 || errno != ENOENT || agree == Agree::kLook) return there;
    const int made = ::open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0600);
    if (made >= 0 || errno != EEXIST) return made;
  }
  errno = ENOENT;
  return -1;
}

/// Closing it unlocks it.
class OpenFile {
 public:
  OpenFile(const std::string& path, Agree agree) : number_(open_or_make(path, agree)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int number() const { return number_; }
  /// Why its lines are not to be believed; empty: they are.
  [[nodiscard]] std::string objection(const std::string& path) const {
    struct stat facts = {};
    if (::fstat(number_, &facts) != 0 || !S_ISREG(facts.st_mode)) return "is not a regular file";
    if (facts.st_uid == ::geteuid() || facts.st_uid == 0) return "";
    struct stat folder = {};
    const bool is_shared =
        ::stat(folder_of(path).c_str(), &folder) == 0 && (folder.st_mode & S_IWOTH) != 0;
    if (!is_shared) return "";
    return "belongs to user " + std::to_string(facts.st_uid) +
           ", and all users may write in its folder: pass a file in a folder of your own";
  }
  /// An agent that holds the lock only reads and writes some bytes; another process may hold it for
  /// as long as it likes. Else errno says why not.
  [[nodiscard]] bool lock(int how, std::chrono::milliseconds limit) const {
    const auto until = std::chrono::steady_clock::now() + limit;
    while (::flock(number_, how | LOCK_NB) != 0) {
      const bool may_wait = errno == EINTR || errno == EWOULDBLOCK;
      if (!may_wait || std::chrono::steady_clock::now() >= until) return false;
      std::this_thread::sleep_for(kLockPause);
    }
    return true;
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
  return ::faccessat(AT_FDCWD, folder_of(path).c_str(), W_OK | X_OK, AT_EACCESS) == 0;
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
                                  const std::string& line, Agree agree,
                                  std::chrono::milliseconds lock_max) {
  const OpenFile file(path, agree);
  if (file.number() < 0 && errno == ENOENT && agree == Agree::kLook && may_create(path)) return "";
  if (file.number() < 0)
    return of_file(path, std::string("cannot be opened: ") + ::strerror(errno));
  if (const std::string why = file.objection(path); !why.empty()) return of_file(path, why);
  // Over NFS as the file was opened.
  if (!file.lock(agree == Agree::kLook ? LOCK_SH : LOCK_EX, lock_max)) {
    const bool is_held = errno == EWOULDBLOCK;
    return of_file(path, is_held ? "is locked by another process; fuser " + printable(path) +
                                       " shows which one"
                                 : std::string("cannot be locked: ") + ::strerror(errno));
  }
  const std::string text = file.text();
  if (!text.empty() && !text.starts_with(kHeading)) {
    return of_file(path,
                   "belongs to another program, torchrun perhaps: remove it, or pass another");
  }
  if (auto found = line_of(key, text)) return std::move(*found);
  if (agree == Agree::kLook) return "";
  if (text.size() >= kBytesMax) return of_file(path, "is full: remove it, or pass another");
  const bool is_torn = !text.empty() && !text.ends_with('\n');  // its writer was killed
  const std::string before = text.empty() ? kHeading : is_torn ? "\n" : "";
  const std::string added = before + key + " " + line + "\n";
  if (::lseek(file.number(), 0, SEEK_END) < 0) {
    return of_file(path, std::string("cannot be written: ") + ::strerror(errno));
  }
  const int error = write_all(file.number(), added);
  if (error == 0) return line;
  return of_file(path, std::string("cannot be written: ") + ::strerror(error));
}

}  // namespace ddprun

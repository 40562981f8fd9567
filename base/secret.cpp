#include "base/secret.hpp"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

#include "base/printable.hpp"

namespace ddprun {

namespace {

/// As ssh treats a private key. A file of another owner, as systemd and Kubernetes provide them,
/// may be readable for our group.
bool is_exposed(const struct stat& file) {
  const mode_t ours = file.st_uid == ::geteuid() ? mode_t{077} : mode_t{07};
  return (file.st_mode & ours) != 0;
}

std::string mode_text(mode_t mode) {
  std::string text = "0";
  for (int shift = 6; shift >= 0; shift -= 3) {
    text += static_cast<char>('0' + ((mode >> shift) & 7U));
  }
  return text;
}

}  // namespace

Result<void> refuse_exposed(const struct stat& file, const std::string& shown,
                            const std::string& what) {
  if (!is_exposed(file)) return {};
  return Error{ErrorKind::kUsage,
               printable(shown) + ": other users may access it (mode " + mode_text(file.st_mode) +
                   "); run chmod 600 on it, and make a new " + what + " if they may have read it"};
}

namespace {

constexpr std::size_t kPageBytes = 4096;  // at least one page, whatever its size
static_assert(kSecretBytesMax < kPageBytes);

constexpr const char* kSecretWord = "secret";

constexpr const char* kAdvice =
    "; make one with: (umask 077; head -c 32 /dev/urandom | base64 > FILE), and copy it to every "
    "node";

Error refuse_file(const std::string& shown, const std::string& why) {
  return {ErrorKind::kUsage, printable(shown) + ": " + why};
}

}  // namespace

Secret::Secret() {
  void* const page =
      ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::bad_alloc();
  page_ = static_cast<char*>(page);
  ::madvise(page, kPageBytes, MADV_DONTDUMP);
  (void)::mlock(page, kPageBytes);  // refused: it may reach swap space, as any other memory
}

Secret::~Secret() {
  ::explicit_bzero(page_, kPageBytes);
  ::munmap(page_, kPageBytes);
}

void Secret::append(std::string_view bytes) {
  const std::size_t room = kSecretBytesMax + 1 - size_;
  size_ += bytes.copy(page_ + size_, room);
}

void Secret::cut_line_end() {
  while (size_ > 0 && (page_[size_ - 1] == '\n' || page_[size_ - 1] == '\r')) page_[--size_] = '\0';
}

Result<void> check_secret(const Secret& secret, const std::string& shown) {
  const std::size_t size = secret.text().size();
  if (size < kSecretBytesMin) {
    return refuse_file(shown, "a secret has at least " + std::to_string(kSecretBytesMin) +
                                  " characters, this one has " + std::to_string(size) + kAdvice);
  }
  if (size > kSecretBytesMax) {
    return refuse_file(shown, "a secret has at most " + std::to_string(kSecretBytesMax) +
                                  " characters, this one has more" + kAdvice);
  }
  return {};
}

namespace {

Result<SharedSecret> checked(std::shared_ptr<Secret> secret, const std::string& shown) {
  secret->cut_line_end();
  const auto good = check_secret(*secret, shown);
  if (!good) return good.error();
  return SharedSecret(std::move(secret));
}

}  // namespace

Result<SharedSecret> read_secret(const std::string& path, const std::string& shown) {
  if (path == kSecretOnStdin) return read_secret_line(STDIN_FILENO, shown, kSecretLineWait);
  // Without O_NONBLOCK a FIFO would block here.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (file < 0) return refuse_file(shown, std::string("cannot read it: ") + ::strerror(errno));
  struct stat status = {};
  auto secret = std::make_shared<Secret>();
  Result<void> good;
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    good = refuse_file(shown, "it is not a regular file");
  } else {
    good = refuse_exposed(status, shown, kSecretWord);
  }
  std::array<char, 512> piece{};
  ssize_t count = 0;
  while (good && (count = ::read(file, piece.data(), piece.size())) > 0) {
    secret->append({piece.data(), static_cast<std::size_t>(count)});
    if (secret->text().size() > kSecretBytesMax) break;
  }
  ::explicit_bzero(piece.data(), piece.size());
  if (count < 0) good = refuse_file(shown, std::string("cannot read it: ") + ::strerror(errno));
  ::close(file);
  if (!good) return good.error();
  return checked(std::move(secret), shown);
}

Result<SharedSecret> read_secret_line(int input, const std::string& shown,
                                      std::chrono::milliseconds limit) {
  struct stat status = {};
  if (::fstat(input, &status) != 0) return refuse_file(shown, "standard input is closed");
  if (::isatty(input) == 1) {
    return refuse_file(shown,
                       "standard input is a terminal, which shows what is typed; write the secret "
                       "to a pipe");
  }
  if (S_ISREG(status.st_mode)) {
    const auto good = refuse_exposed(status, shown, kSecretWord);
    if (!good) return good.error();
  }
  auto secret = std::make_shared<Secret>();
  char letter = '\0';  // one at a time: what follows the line is not ours
  while (letter != '\n' && secret->text().size() <= kSecretBytesMax) {
    pollfd readable{input, POLLIN, 0};
    const int ready = ::poll(&readable, 1, static_cast<int>(limit.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      return refuse_file(shown, "no line came from standard input within " +
                                    std::to_string(limit.count() / 1000) + " s");
    }
    const ssize_t count = ::read(input, &letter, 1);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) return refuse_file(shown, std::string("cannot read it: ") + ::strerror(errno));
    if (count == 0) break;
    secret->append({&letter, 1});
  }
  return checked(std::move(secret), shown);
}

SharedSecret take_secret_variable(char** block) {
  const std::string start = std::string(kSecretVariable) + "=";
  std::shared_ptr<Secret> secret;
  char** kept = block;
  for (char** entry = block; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with(start)) {
      *kept++ = *entry;
      continue;
    }
    char* const value = *entry + start.size();
    const std::size_t size = ::strlen(value);
    if (secret == nullptr) {  // as with getenv(), the first one counts
      secret = std::make_shared<Secret>();
      secret->append({value, size});
      secret->cut_line_end();
    }
    ::explicit_bzero(value, size);
  }
  *kept = nullptr;
  return secret;
}

}  // namespace ddprun

#include "launcher/machine/machine.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/hex.hpp>
#include <filesystem>
#include <iterator>
#include <memory>

#include "base/descriptor.hpp"
#include "base/printable.hpp"

namespace ddprun {

namespace {

constexpr std::size_t kRandomBytes = 32;

Error failed(const std::string& what, const std::string& path, int error) {
  return {ErrorKind::kSystem, what + " " + printable(path) + ": " + ::strerror(error)};
}

Result<void> make_directories(const std::filesystem::path& directory) {
  if (directory.empty() || ::access(directory.c_str(), F_OK) == 0) return {};
  if (auto above = make_directories(directory.parent_path()); !above) return above;
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
  std::string text;
  boost::algorithm::hex_lower(bytes, std::back_inserter(text));
  text += '\n';
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

namespace {

constexpr const char* kLibrary = "libmunge.so.2";
constexpr std::string_view kMungePrefix = "MUNGE:";

// munge.h, which is part of the library's interface.
using Context = void;
constexpr int kOptionCipher = 0;
constexpr int kOptionUid = 9;
constexpr int kNoCipher = 0;
constexpr int kSuccess = 0;
constexpr std::array<int, 2> kNoDaemon{6, 7};  // not there, too slow
// Old, from the future, seen before: the content is that of its author all the same. A job may
// start its steps late, and several of them on one node; what is old opens no link that is new.
constexpr std::array<int, 3> kUntimely{15, 16, 17};

template <class Codes>
bool has(const Codes& codes, int code) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

struct Munge {
  Context* (*create)() = nullptr;
  void (*destroy)(Context*) = nullptr;
  int (*get)(Context*, int, ...) = nullptr;
  int (*decode)(const char*, Context*, void**, int*, uid_t*, gid_t*) = nullptr;
  const char* (*reason)(Context*) = nullptr;
  const char* (*text)(int) = nullptr;
};

template <class Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

Result<Munge> load(const std::string& shown) {
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  Munge munge;
  const bool complete = library != nullptr && find(library, "munge_ctx_create", munge.create) &&
                        find(library, "munge_ctx_destroy", munge.destroy) &&
                        find(library, "munge_ctx_get", munge.get) &&
                        find(library, "munge_decode", munge.decode) &&
                        find(library, "munge_ctx_strerror", munge.reason) &&
                        find(library, "munge_strerror", munge.text);
  if (complete) return munge;
  const char* const why = ::dlerror();
  return Error{ErrorKind::kSystem, shown + " is a credential of munge, and " + kLibrary +
                                       " cannot be loaded (" + (why == nullptr ? "unknown" : why) +
                                       "); install Debian's package libmunge2"};
}

/// What munged gave; the content is overwritten in the end.
struct Opened {
  void* content = nullptr;
  int size = 0;
  uid_t author = 0;
  gid_t group = 0;
  Opened() = default;
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() {
    if (content == nullptr) return;
    ::explicit_bzero(content, static_cast<std::size_t>(size));
    ::free(content);
  }
};

/// Why it is no secret; empty if this user alone could make it and can open it.
std::string flaw_of(const Munge& munge, Context* context, const Opened& opened) {
  const uid_t own = ::geteuid();
  int reader = -1;
  int cipher = kNoCipher;
  const bool known = munge.get(context, kOptionUid, &reader) == kSuccess &&
                     munge.get(context, kOptionCipher, &cipher) == kSuccess;
  if (opened.author != own) {
    return "is of user " + std::to_string(opened.author) + ", and ddprun runs as user " +
           std::to_string(own);
  }
  if (!known || reader < 0 || static_cast<uid_t>(reader) != own) {
    return "could be opened by every user; make it with munge --restrict-uid=" +
           std::to_string(own);
  }
  return cipher == kNoCipher ? "is not encrypted; make it with another cipher" : "";
}

Result<SharedSecret> content_of(const Munge& munge, Context* context, const std::string& text,
                                const std::string& shown) {
  Opened opened;
  const int code = munge.decode(text.c_str(), context, &opened.content, &opened.size,
                                &opened.author, &opened.group);
  const std::string credential = shown + ": the credential of munge ";
  if (code != kSuccess && !has(kUntimely, code)) {
    const char* const why = munge.reason(context);
    return Error{has(kNoDaemon, code) ? ErrorKind::kSystem : ErrorKind::kUsage,
                 credential + "cannot be opened: " +
                     printable(why == nullptr || *why == '\0' ? munge.text(code) : why)};
  }
  const std::string flaw = flaw_of(munge, context, opened);
  if (!flaw.empty()) return Error{ErrorKind::kUsage, credential + flaw};
  auto secret = std::make_shared<Secret>();
  if (opened.content != nullptr) {
    secret->append(
        {static_cast<const char*>(opened.content), static_cast<std::size_t>(opened.size)});
  }
  secret->cut_line_end();
  if (const auto good = check_secret(*secret, shown); !good) return good.error();
  return SharedSecret(std::move(secret));
}

}  // namespace

Result<SharedSecret> open_credential(SharedSecret given, const std::string& shown) {
  if (given == nullptr || !given->text().starts_with(kMungePrefix)) return given;
  const auto munge = load(shown);
  if (!munge) return munge.error();
  const std::unique_ptr<Context, void (*)(Context*)> context(munge->create(), munge->destroy);
  if (context == nullptr) return Error{ErrorKind::kSystem, shown + ": out of memory for munge"};
  return content_of(*munge, context.get(), std::string(given->text()), shown);
}

}  // namespace ddprun

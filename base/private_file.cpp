#include "base/private_file.hpp"

#include <unistd.h>

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

}  // namespace ddprun

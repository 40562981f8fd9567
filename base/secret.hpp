// Secret: what the nodes of a run share and its strangers do not know. It lies in pages of its own,
// which no core dump contains, and is overwritten when the last owner drops it. Immutable, so a
// shared pointer may go anywhere; nothing prints one.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ddprun {

/// Fails with kUsage if other users may access it. The sentence begins with `shown`; `what` the
/// file holds, "secret", is to be made again if they have.
[[nodiscard]] Result<void> refuse_exposed(const struct stat& file, const std::string& shown,
                                          const std::string& what);

// The messages of a handshake let a listener test guesses on machines of its own, so a secret needs
// 128 random bits: 32 hexadecimal digits.
inline constexpr std::size_t kSecretBytesMin = 32;
inline constexpr std::size_t kSecretBytesMax = 1024;

class Secret {
 public:
  /// Room for a secret, empty.
  Secret();
  ~Secret();
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;

  [[nodiscard]] std::string_view text() const { return {page_, size_}; }
  /// What does not fit is cut: one byte too many remains, so that check_secret() refuses it.
  void append(std::string_view bytes);
  /// Without the end of the last line, which an editor or `echo` has added.
  void cut_line_end();

 private:
  char* page_;
  std::size_t size_ = 0;
};
using SharedSecret = std::shared_ptr<const Secret>;

/// Refuses one that is too short or too long. `shown`: where it comes from, for the sentence.
[[nodiscard]] Result<void> check_secret(const Secret& secret, const std::string& shown);

/// In the place of a file: the first line of standard input. A starter that reaches a node through
/// ssh hands the secret over in this way, and it is in no argument, variable or file.
inline constexpr std::string_view kSecretOnStdin = "-";
// For each byte of it. It was written before, or is as soon as the starter has its connections.
inline constexpr std::chrono::milliseconds kSecretLineWait = std::chrono::seconds(60);

/// The content of a regular file that no other user may read, without the end of its line; or
/// kSecretOnStdin. Fails with kUsage; the sentence begins with `shown`, "--rdzv-secret-file=FILE".
[[nodiscard]] Result<SharedSecret> read_secret(const std::string& path, const std::string& shown);

/// The first line that `input` has, which is not a terminal; the rest stays there, for the workers.
/// Waits for `limit` at most for each byte.
[[nodiscard]] Result<SharedSecret> read_secret_line(int input, const std::string& shown,
                                                    std::chrono::milliseconds limit);

inline constexpr const char* kSecretVariable = "DDPRUN_SECRET";

/// Takes the variable out of the environment `block` (environ) and overwrites its text there, which
/// is what /proc/PID/environ shows. Null if it is unset; one that is empty was meant to be a
/// secret. Thread rule: call first in main().
[[nodiscard]] SharedSecret take_secret_variable(char** block);

}  // namespace ddprun

// The trainer's exceptions. what() is one sentence that names who, what and what to try; main()
// prints it unchanged and exits with exit_code().
#pragma once

#include <stdexcept>
#include <string>

namespace ddprun::trainer {

/// LibTorch appends a stack to its sentences.
inline std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

/// An error that the operator can fix: a damaged file, a full disk, a missing data set. Exit code
/// 1.
class TrainerError : public std::runtime_error {
 public:
  explicit TrainerError(const std::string& sentence) : std::runtime_error(sentence) {}
  [[nodiscard]] virtual int exit_code() const { return 1; }
};

/// Another rank is gone, or has left the round; not an error of this rank. Exit code 1.
class LostPeer : public TrainerError {
 public:
  using TrainerError::TrainerError;
};

/// A flag or environment variable is invalid. Exit code 2.
class UsageError : public TrainerError {
 public:
  using TrainerError::TrainerError;
  [[nodiscard]] int exit_code() const override { return 2; }
};

}  // namespace ddprun::trainer

// How the trainer fails: an exception with one sentence that says who, what and what to try. main()
// prints the sentence as it is and leaves with exit_code(). Plain value, no thread rule.
#pragma once

#include <stdexcept>
#include <string>

namespace ddprun::trainer {

/// Something the operator can cure: a damaged file, a full disk, pictures that are not there.
/// Exit 1.
class TrainerError : public std::runtime_error {
 public:
  explicit TrainerError(const std::string& sentence) : std::runtime_error(sentence) {}
  [[nodiscard]] virtual int exit_code() const { return 1; }
};

/// A flag or variable is wrong. Exit 2.
class UsageError : public TrainerError {
 public:
  using TrainerError::TrainerError;
  [[nodiscard]] int exit_code() const override { return 2; }
};

}  // namespace ddprun::trainer

// Result<T>: a value, or an Error that an operator can cause. The sentence is shown to the user
// unchanged, so it names who, what and what to try. Programming errors are caught by DDPRUN_ASSERT
// instead (base/assert.hpp).
#pragma once

#include <boost/assert/source_location.hpp>
#include <boost/system/result.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/exit_status.hpp"

namespace ddprun {

enum class ErrorKind {
  kUsage,          // a flag, variable or argument is wrong: exit 2
  kUnsupported,    // known, but not supported yet: exit 2
  kNoScript,       // the script that Python is to run does not exist: exit 2, which is Python's
  kNotFound,       // the program to run does not exist: exit 127
  kNotExecutable,  // it exists and cannot be executed: exit 126
  kPortTaken,      // an address to listen on is in use: exit 1
  kSystem,         // a system call failed: exit 1
};

struct Error {
  Error() = default;  // for result.error() on success, which Boost defines as Error()
  Error(ErrorKind why, std::string text) : kind(why), sentence(std::move(text)) {}
  ErrorKind kind = ErrorKind::kSystem;
  std::string sentence;
};

/// Exit code of a ddprun program that fails with this error.
[[nodiscard]] constexpr int exit_code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
    case ErrorKind::kUnsupported:
    case ErrorKind::kNoScript:
      return kExitUsage;
    case ErrorKind::kNotFound:
      return kExitNotFound;
    case ErrorKind::kNotExecutable:
      return kExitNotExecutable;
    case ErrorKind::kPortTaken:
    case ErrorKind::kSystem:
      return kExitFailure;
  }
  return kExitFailure;
}

template <class T>
using Result = boost::system::result<T, Error>;

/// Called by value() of a failed Result; Boost finds it by argument-dependent lookup.
[[noreturn]] inline void throw_exception_from_error(const Error& error,
                                                    const boost::source_location&) {
  throw std::runtime_error(error.sentence);
}

}  // namespace ddprun

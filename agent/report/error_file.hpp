// error_file: the JSON that torch's recorder
// (torch.distributed.elastic.multiprocessing.errors.record) writes for a failing main, and the one
// that ddprun leaves for the launcher above it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/limits.hpp"

namespace ddprun {

struct WorkerError {
  std::string message;    // "ValueError: needle"
  std::string callstack;  // several lines; empty when the file has none
};

struct ErrorFile {
  enum class Form {
    kAbsent,  // the worker wrote nothing
    kTorn,    // not what the recorder writes; it counts as absent, and the report says so
    kGood,
  };
  Form form = Form::kAbsent;
  WorkerError error;  // of kGood
};

/// Of a text longer than kErrorFileBytesMax, the first and the last bytes of a file, the message is
/// abridged in the middle.
[[nodiscard]] ErrorFile read_error_file(const std::optional<std::string>& text);

/// The same file with "errorCode" in its message, for TORCHELASTIC_ERROR_FILE of the launcher.
/// `code` is minus the signal for a death by signal, as torch has it. A file whose message is not
/// an object comes back unchanged, a torn one not at all.
[[nodiscard]] std::optional<std::string> with_error_code(const std::string& text, int code);

/// An error of ddprun itself in the recorder's schema, without a callstack. The sentence is made
/// printable: it may quote a name that is not UTF-8, and JSON is.
[[nodiscard]] std::string own_error_file(const std::string& sentence, std::int64_t epoch_seconds);

}  // namespace ddprun

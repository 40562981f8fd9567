// The error file in the format of torch.distributed.elastic's recorder, written atomically.
#include <cxxabi.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <exception>
#include <memory>
#include <string_view>
#include <typeinfo>

#include "worker_api/worker.hpp"

namespace ddprun {
namespace {

bool continues(unsigned char byte) {
  return (byte & 0xC0) == 0x80;
}

/// Length of the well-formed UTF-8 sequence at the start of `rest` (Unicode, table 3-7), or 0.
std::size_t sequence_length(std::string_view rest) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(rest[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (rest.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues(at(i))) return 0;
  }
  const unsigned char second = at(1);
  if (lead == 0xE0 && second < 0xA0) return 0;  // overlong
  if (lead == 0xED && second > 0x9F) return 0;  // surrogate
  if (lead == 0xF0 && second < 0x90) return 0;  // overlong
  if (lead == 0xF4 && second > 0x8F) return 0;  // above U+10FFFF
  return length;
}

void append_control(std::string& out, unsigned char byte) {
  static constexpr std::array<char, 17> kDigits{"0123456789abcdef"};
  out += "\\u00";
  out += kDigits[byte >> 4];
  out += kDigits[byte & 0xF];
}

void append_ascii(std::string& out, char byte) {
  switch (byte) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  const auto code = static_cast<unsigned char>(byte);
  if (code < 0x20 || code == 0x7F) {
    append_control(out, code);
  } else {
    out += byte;
  }
}

/// `bytes` quoted and escaped; each byte that is not part of valid UTF-8 becomes U+FFFD. Not
/// Boost.JSON: the program may contain another Boost, which does not validate UTF-8 either.
std::string json_text(const std::string& bytes) {
  std::string out = "\"";
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const std::size_t length = sequence_length(rest);
    if (length == 0) {
      out += "\xEF\xBF\xBD";  // U+FFFD
    } else if (length == 1) {
      append_ascii(out, rest[0]);
    } else {
      out += rest.substr(0, length);
    }
    rest.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
  return out;
}

int write_all(int file, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(file, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    done += static_cast<std::size_t>(count);
  }
  return 0;
}

int replace_file(const std::string& path, const std::string& text) {
  const std::string fresh = path + "." + std::to_string(::getpid()) + ".tmp";
  const int file = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return errno;
  int failure = write_all(file, text);
  if (::close(file) != 0 && failure == 0) failure = errno;
  if (failure == 0 && ::rename(fresh.c_str(), path.c_str()) != 0) failure = errno;
  if (failure != 0) ::unlink(fresh.c_str());
  return failure;
}

std::string type_name(const std::exception& error) {
  const char* mangled = typeid(error).name();
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> readable(
      abi::__cxa_demangle(mangled, nullptr, nullptr, &status), &free);
  return status == 0 ? readable.get() : mangled;
}

int report_failure(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  const int failure = record_error(message);
  if (failure != 0 && failure != ENOENT) std::perror("cannot record the error for the launcher");
  return 1;
}

}  // namespace

std::string error_record(const std::string& message, const std::string& callstack,
                         std::int64_t epoch_seconds) {
  // Readers prefer py_callstack to the message, so it must not be empty.
  return R"({"message": {"message": )" + json_text(message) +
         R"(, "extraInfo": {"py_callstack": )" +
         json_text(callstack.empty() ? message : callstack) + R"(, "timestamp": ")" +
         std::to_string(epoch_seconds) + "\"}}}";
}

int record_error(const std::string& message, const std::string& callstack) {
  const char* path = ::getenv("TORCHELASTIC_ERROR_FILE");
  if (path == nullptr || *path == '\0') return ENOENT;
  return replace_file(path, error_record(message, callstack, std::time(nullptr)));
}

int recorded(const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    return report_failure(type_name(error) + ": " + error.what());
  } catch (...) {
    return report_failure("an exception that is not a std::exception");
  }
}

int ignore_sigpipe() {
  struct sigaction action = {};
  action.sa_handler = SIG_IGN;
  return ::sigaction(SIGPIPE, &action, nullptr) == 0 ? 0 : errno;
}

}  // namespace ddprun

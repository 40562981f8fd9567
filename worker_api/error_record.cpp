// The error file in the format of torch.distributed.elastic's recorder, written atomically.
#include <cxxabi.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <exception>
#include <memory>
#include <typeinfo>

#include "worker_api/json_text.hpp"
#include "worker_api/worker.hpp"

namespace ddprun {
namespace {

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

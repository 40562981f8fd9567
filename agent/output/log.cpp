#include "agent/output/log.hpp"

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <utility>

#include "base/message_line.hpp"

namespace ddprun {

namespace {

// How long one message may wait for a console that takes nothing; then it, and those after it, are
// dropped until the console takes something again.
constexpr std::chrono::milliseconds kConsoleWait{1000};
// Bytes of one write to a console: a pipe that is writable takes so many at once.
constexpr std::size_t kConsoleChunk = 4096;

bool takes_bytes(int descriptor, std::chrono::milliseconds timeout) {
  pollfd one{descriptor, POLLOUT, 0};
  return ::poll(&one, 1, static_cast<int>(timeout.count())) == 1;
}

class PartSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  PartSink(spdlog::logger& messages, std::string code)
      : messages_(messages), code_(std::move(code)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const bool error = message.level >= spdlog::level::err;
    const std::string_view line(message.payload.data(), message.payload.size());
    messages_.log(message.level, error ? error_line(code_, line) : warning_line(code_, line));
  }
  void flush_() override {}

  spdlog::logger& messages_;
  std::string code_;
};

}  // namespace

void MessageSink::sink_it_(const spdlog::details::log_msg& message) {
  std::string line(message.payload.data(), message.payload.size());
  line += '\n';
  if (writer_) return writer_(line);
  write_directly(line);
}

void MessageSink::write_directly(std::string_view line) {
  while (!line.empty()) {
    // A stuck console has cost its wait once: until it takes something again, lines are dropped.
    if (!takes_bytes(descriptor_, stuck_ ? std::chrono::milliseconds(0) : kConsoleWait)) {
      stuck_ = true;
      return;
    }
    stuck_ = false;
    const ssize_t written = ::write(descriptor_, line.data(), std::min(line.size(), kConsoleChunk));
    if (written <= 0) return;
    line.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::shared_ptr<spdlog::logger> make_logger(int descriptor) {
  auto logger =
      std::make_shared<spdlog::logger>("ddprun", std::make_shared<MessageSink>(descriptor));
  logger->set_level(spdlog::level::info);
  return logger;
}

std::shared_ptr<spdlog::logger> make_part_logger(spdlog::logger& messages,
                                                 const std::string& code) {
  auto logger = std::make_shared<spdlog::logger>(code, std::make_shared<PartSink>(messages, code));
  logger->set_level(spdlog::level::warn);
  return logger;
}

}  // namespace ddprun

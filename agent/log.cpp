#include "agent/log.hpp"

#include <poll.h>
#include <unistd.h>

#include <utility>

#include "agent/core/limits.hpp"
#include "agent/message_sink.hpp"

namespace ddprun {

namespace {

bool takes_bytes(int descriptor, std::chrono::milliseconds patience) {
  pollfd one{descriptor, POLLOUT, 0};
  return ::poll(&one, 1, static_cast<int>(patience.count())) == 1;
}

}  // namespace

MessageSink::MessageSink(int descriptor) : descriptor_(descriptor) {}

void MessageSink::attach(Writer writer) {
  writer_ = std::move(writer);
}

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

std::string error_line(const std::string& code, const std::string& sentence) {
  return "ddprun: error [" + code + "] " + sentence;
}

}  // namespace ddprun

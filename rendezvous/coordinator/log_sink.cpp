#include "rendezvous/coordinator/log_sink.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace ddprun::coordinator {

namespace {

/// Writes until something is refused; returns what was not written. O_NONBLOCK is set on some
/// terminals, by another process.
std::string_view write_out(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd writable = {descriptor, POLLOUT, 0};
      ::poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      break;
    }
  }
  return text;
}

}  // namespace

void LogSink::sink_it_(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t line;
  formatter_->format(message, line);
  log_->add({line.data(), line.size()});
}

void LogSink::Log::add(std::string_view line) {
  if (waiting.size() + line.size() > bytes_max) {
    ++lost;
    return;
  }
  waiting += line;
  if (!in_flight) write();
}

void LogSink::Log::write() {
  in_flight = true;
  const auto refused = std::make_shared<std::string>();
  thread.post([refused, to = descriptor,
               text = std::exchange(waiting, {})] { *refused = write_out(to, text); },
              [self = shared_from_this(), refused] {
                self->in_flight = false;
                self->lost +=
                    static_cast<std::uint64_t>(std::count(refused->begin(), refused->end(), '\n'));
                if (refused->empty() && self->lost != 0) {
                  self->waiting += "ddprun-rdzvd: " + std::to_string(self->lost) +
                                   " earlier lines are missing: the log could not be written\n";
                  self->lost = 0;
                }
                if (!self->waiting.empty()) self->write();
              });
}

}  // namespace ddprun::coordinator

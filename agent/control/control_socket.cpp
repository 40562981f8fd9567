#include "agent/control/control_socket.hpp"

#include <unistd.h>

#include <utility>

#include "base/message_line.hpp"

namespace ddprun {

void ControlSocket::open(const Environment& environment) {
  if (std::exchange(opened_, true)) return;
  const auto listener = std::make_shared<std::optional<Result<control::Listener>>>();
  const std::string about = control::about(target_.status());
  disk_.post([listener, environment, about] { *listener = control::listen(environment, about); },
             [this, listener, closed = closed_] {
               if (!*closed) return serve(**listener);
               if (!**listener) return;
               ::close((**listener)->descriptor);
               control::remove((**listener)->path);
             });
}

void ControlSocket::serve(const Result<control::Listener>& listener) {
  if (!listener) {
    logger_.info(note_line("CONTROL", "ddprun ps and other commands do not see this run: " +
                                          listener.error().sentence));
    return;
  }
  path_ = listener->path;
  server_.emplace(disk_.executor(), listener->descriptor, target_);
}

void ControlSocket::tell(const control::Outcome& outcome) {
  if (server_) server_->tell(outcome);
}

void ControlSocket::close() {
  if (std::exchange(*closed_, true)) return;
  server_.reset();
  if (!path_.empty()) control::remove(path_);
}

}  // namespace ddprun

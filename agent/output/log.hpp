// The logger of ddprun's own messages: standard error, one write per message, no time stamps of its
// own. A console that takes nothing (a stopped terminal, a full pipe) costs a bounded wait, then
// lines are dropped. Thread rule: one thread. Ownership: the caller keeps the logger; it is not in
// spdlog's registry.
#pragma once

#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace ddprun {

/// By itself it writes to a descriptor, which it does not own; while an agent passes the output of
/// workers on, it is attached to the same console writer, so that lines keep their order and stay
/// whole.
class MessageSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  using Writer = std::function<void(std::string_view)>;
  explicit MessageSink(int descriptor) : descriptor_(descriptor) {}

  /// From now on whole lines go to `writer`; an empty one goes back to the descriptor.
  void attach(Writer writer) { writer_ = std::move(writer); }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}
  void write_directly(std::string_view line);

  int descriptor_;
  Writer writer_;
  bool stuck_ = false;
};

/// Writes every message as it is, plus a newline, to `descriptor`. Does not take the descriptor
/// over.
[[nodiscard]] std::shared_ptr<spdlog::logger> make_logger(int descriptor = 2);

/// A logger for a part that knows nothing of consoles: its lines, from warnings on, become messages
/// of ddprun, `ddprun: warning [CODE] line`. `messages` must outlive it.
[[nodiscard]] std::shared_ptr<spdlog::logger> make_part_logger(spdlog::logger& messages,
                                                               const std::string& code);

}  // namespace ddprun

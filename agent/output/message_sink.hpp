// MessageSink: where ddprun's own messages go. By itself it writes to a descriptor; while an agent
// passes the output of workers on, it is attached to the same console writer, so that lines keep
// their order and stay whole. Thread rule: one thread. Ownership: does not own the descriptor.
#pragma once

#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>

#include <functional>
#include <string_view>

namespace ddprun {

class MessageSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  using Writer = std::function<void(std::string_view)>;
  explicit MessageSink(int descriptor);

  /// From now on whole lines go to `writer`; an empty one goes back to the descriptor.
  void attach(Writer writer);

 private:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}
  void write_directly(std::string_view line);

  int descriptor_;
  Writer writer_;
  bool stuck_ = false;
};

}  // namespace ddprun

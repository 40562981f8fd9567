// LogSink: the log of the daemon, written by a DiskThread: a terminal, a pipe or a file system that
// takes nothing delays no client. Lines beyond kLogBytesMax are lost and counted, and the log says
// how many. Thread rule: the io_context's thread. Ownership: the caller owns the descriptor.
#pragma once

#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>

#include <cstdint>
#include <memory>
#include <string>

#include "net/disk_thread.hpp"
#include "rendezvous/coordinator/limits.hpp"

namespace ddprun::coordinator {

class LogSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  LogSink(const DiskThread& thread, int descriptor, std::size_t bytes_max = kLogBytesMax)
      : log_(std::make_shared<Log>(thread, descriptor, bytes_max)) {}

 private:
  // Outlives the sink while a write is under way.
  struct Log : std::enable_shared_from_this<Log> {
    Log(const DiskThread& by, int to, std::size_t most)
        : thread(by), descriptor(to), bytes_max(most) {}
    void add(std::string_view line);
    void write();

    DiskThread thread;
    const int descriptor;
    const std::size_t bytes_max;
    std::string waiting{};
    bool in_flight = false;
    std::uint64_t lost = 0;
  };

  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}  // the thread's idle() is waited for at the end

  std::shared_ptr<Log> log_;
};

}  // namespace ddprun::coordinator

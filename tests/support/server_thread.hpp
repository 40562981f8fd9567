// ServerThread: runs a real server next to the blocking clients on the test's own thread: an
// io_context, the thread that runs it, and the server's log. Destroy the server (see run()) before
// this object.
#pragma once

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "net/listen.hpp"
#include "tests/support/catch.hpp"

namespace ddprun {

/// A wait that takes longer than this in a test with a real server counts as hung.
inline constexpr int kHung_ms = 20'000;

class ServerThread {
 public:
  ServerThread()
      : work_(io_.get_executor()),
        logger_(std::make_shared<spdlog::logger>(
            "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_))) {
    logger_->set_level(spdlog::level::debug);
  }
  ~ServerThread() {
    work_.reset();
    if (thread_.joinable()) thread_.join();
  }
  ServerThread(const ServerThread&) = delete;
  ServerThread& operator=(const ServerThread&) = delete;

  /// After this call only run() may access the server.
  void start() {
    thread_ = std::thread([this] { io_.run(); });
  }
  [[nodiscard]] boost::asio::any_io_executor executor() { return io_.get_executor(); }
  /// A socket that listens on this port; 0: one picked by the kernel.
  [[nodiscard]] auto listen(std::uint16_t port = 0) {
    auto listener = net::listen(io_.get_executor(), boost::asio::ip::address_v4::loopback(), port);
    REQUIRE(listener.has_value());
    return std::move(*listener);
  }
  [[nodiscard]] std::shared_ptr<spdlog::logger> logger() const { return logger_; }
  /// All log lines so far.
  [[nodiscard]] std::string log() {
    std::string text;
    run([&] { text = text_.str(); });
    return text;
  }
  /// Runs `work` on the server's thread and waits for it.
  template <class Work>
  void run(Work work) {
    std::promise<void> done;
    boost::asio::post(io_, [&] {
      work();
      done.set_value();
    });
    REQUIRE(done.get_future().wait_for(std::chrono::milliseconds(kHung_ms)) ==
            std::future_status::ready);
  }

 private:
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> logger_;
  std::thread thread_;
};

}  // namespace ddprun

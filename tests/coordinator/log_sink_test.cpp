// The daemon's log in front of a pipe that takes nothing.
#include "rendezvous/coordinator/daemon.hpp"

#include <fcntl.h>
#include <spdlog/logger.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <utility>

#include "tests/support/catch.hpp"

using ddprun::DiskThread;
using ddprun::coordinator::make_log_sink;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kBytesMax = 64;

/// A pipe that is full, and a log that writes to it.
class FullLog {
 public:
  FullLog() {
    const std::string block(4096, '.');
    while (::write(ends_[1], block.data(), block.size()) > 0) filled_ += block.size();
    log.set_pattern("%v");
  }
  ~FullLog() {
    thread_.abandon();
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  FullLog(const FullLog&) = delete;
  FullLog& operator=(const FullLog&) = delete;

  /// What was logged, read until it ends with `last`.
  std::string read_until(const std::string& last) {
    std::string text;
    std::array<char, 4096> chunk;
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (!text.ends_with(last) && std::chrono::steady_clock::now() < deadline) {
      const ssize_t bytes = ::read(ends_[0], chunk.data(), chunk.size());
      if (bytes > 0) text.append(chunk.data(), static_cast<std::size_t>(bytes));
      io_.restart();
      if (bytes < 0) io_.run_one_for(2ms);
    }
    const std::size_t filling = std::exchange(filled_, 0);
    return text.substr(std::min(filling, text.size()));
  }

 private:
  static std::array<int, 2> pipe() {
    std::array<int, 2> ends = {-1, -1};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0);
    return ends;
  }

  std::array<int, 2> ends_ = pipe();
  std::size_t filled_ = 0;
  boost::asio::io_context io_;
  DiskThread thread_{io_.get_executor()};

 public:
  spdlog::logger log{"test", make_log_sink(thread_, ends_[1], kBytesMax)};
};

}  // namespace

TEST_CASE("a log that takes nothing keeps lines up to its limit, and counts the others") {
  FullLog full;
  full.log.info("under way");
  full.log.info(std::string(kBytesMax - 1, 'a'));
  full.log.info("lost");
  full.log.info("lost");
  CHECK(full.read_until("written\n") ==
        "under way\n" + std::string(kBytesMax - 1, 'a') +
            "\nddprun-rdzvd: 2 earlier lines are missing: the log could not be written\n");
  full.log.info("again");
  CHECK(full.read_until("again\n").ends_with("again\n"));
}

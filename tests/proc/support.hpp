// What the tests of agent/proc share: a bounded event loop, temporary directories, pipes, a probe
// program.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <utility>

#include "agent/proc/spawn.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace proc_test {

using ddprun::TempDir;

inline constexpr std::chrono::seconds kWaitMax{20};

/// Runs the loop until `condition` holds; fails the test when it never does.
inline void run_until(boost::asio::io_context& io, const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kWaitMax;
  while (!condition() && std::chrono::steady_clock::now() < deadline) {
    io.restart();
    io.run_one_for(std::chrono::milliseconds(20));
  }
  REQUIRE(condition());
}

/// Runs a coroutine to its end; one that does not end fails the test instead of hanging it.
inline void run(boost::asio::io_context& io, boost::asio::awaitable<void> work) {
  bool done = false;
  std::exception_ptr thrown;
  boost::asio::co_spawn(io, std::move(work), [&](std::exception_ptr failure) {
    thrown = std::move(failure);
    done = true;
  });
  run_until(io, [&] { return done; });
  if (thrown) std::rethrow_exception(thrown);
}

/// Waits for something another process does, without the loop.
inline bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kWaitMax;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    ::poll(nullptr, 0, 2);
  }
  return true;
}

class Pipe {
 public:
  Pipe() { REQUIRE(::pipe2(ends_.data(), O_CLOEXEC) == 0); }
  ~Pipe() {
    close_read();
    close_write();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  [[nodiscard]] int read_end() const { return ends_[0]; }
  [[nodiscard]] int write_end() const { return ends_[1]; }
  void close_read() { close(0); }
  void close_write() { close(1); }
  /// Everything up to the end of the stream.
  [[nodiscard]] std::string read_all() {
    close_write();
    std::string all;
    std::array<char, 65536> buffer;
    for (ssize_t n = 0; (n = ::read(read_end(), buffer.data(), buffer.size())) > 0;) {
      all.append(buffer.data(), static_cast<std::size_t>(n));
    }
    return all;
  }
  /// What is there now.
  [[nodiscard]] std::string read_some() const {
    std::string all;
    std::array<char, 65536> buffer;
    pollfd ready = {read_end(), POLLIN, 0};
    while (::poll(&ready, 1, 0) == 1) {
      const ssize_t n = ::read(read_end(), buffer.data(), buffer.size());
      if (n <= 0) break;
      all.append(buffer.data(), static_cast<std::size_t>(n));
    }
    return all;
  }
  [[nodiscard]] std::string read_at_most(std::size_t bytes) const {
    std::string some(bytes, '\0');
    pollfd ready = {read_end(), POLLIN, 0};
    const ssize_t n = ::poll(&ready, 1, 0) == 1 ? ::read(read_end(), some.data(), bytes) : 0;
    some.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return some;
  }
  [[nodiscard]] std::string read_line() const {
    std::string line;
    for (char c = 0; ::read(read_end(), &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }

 private:
  void close(std::size_t index) {
    if (ends_[index] >= 0) ::close(ends_[index]);
    ends_[index] = -1;
  }
  std::array<int, 2> ends_ = {-1, -1};
};

inline std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream all;
  all << file.rdbuf();
  return all.str();
}

inline void write_file(const std::string& path, const std::string& text, unsigned mode = 0644) {
  std::ofstream(path, std::ios::binary) << text;
  REQUIRE(::chmod(path.c_str(), static_cast<mode_t>(mode)) == 0);
}

/// A request that runs the probe program (tests/proc/probe.cpp).
inline ddprun::SpawnRequest probe(const std::string& what, const std::string& argument = "") {
  return {PROC_PROBE, {"probe", what, argument}, {"PATH=/usr/bin:/bin", "MARK=here"}, 1, 2};
}
inline ddprun::SpawnRequest shell(const std::string& line) {
  return {"/bin/sh", {"sh", "-c", line}, {"PATH=/usr/bin:/bin"}, 1, 2};
}

inline boost::asio::awaitable<void> wait_into(ddprun::Child& child, ddprun::ExitStatus& status) {
  auto ended = co_await child.wait();
  REQUIRE(ended.has_value());
  status = *ended;
}

inline ddprun::ExitStatus wait_for(boost::asio::io_context& io, ddprun::Child& child) {
  auto status = ddprun::ExitStatus::signaled(64);
  run(io, wait_into(child, status));
  return status;
}

/// Children of this process, alive or zombies.
inline int children() {
  const std::string self = std::to_string(::getpid());
  std::istringstream list(contents("/proc/self/task/" + self + "/children"));
  int count = 0;
  for (int pid = 0; list >> pid;) ++count;
  return count;
}

inline int open_descriptors() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    static_cast<void>(entry);
    ++count;
  }
  return count - 1;  // the directory itself
}

inline bool exists_in_proc(pid_t pid) {
  return std::filesystem::exists("/proc/" + std::to_string(pid));
}

inline bool alive(pid_t pid) {
  const std::string stat = contents("/proc/" + std::to_string(pid) + "/stat");
  const auto bracket = stat.rfind(')');
  return bracket != std::string::npos && stat.substr(bracket + 2, 1) != "Z";
}

}  // namespace proc_test

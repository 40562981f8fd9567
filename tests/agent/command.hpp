// Command: a program under test, started in a POSIX session of its own, with its output in files.
// Thread rule: one thread. Ownership: kills what it started when it goes out of scope, by pid.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/proc/child.hpp"
#include "base/environment.hpp"
#include "base/exit_status.hpp"

namespace ddprun::test {

inline constexpr std::chrono::seconds kWaitMax{20};

/// Checks `condition` until it holds; false when it does not in time.
[[nodiscard]] bool wait_until(const std::function<bool()>& condition,
                              std::chrono::milliseconds timeout = kWaitMax);

/// A directory of its own, removed at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  /// Names of what is in it.
  [[nodiscard]] std::vector<std::string> entries() const;

 private:
  std::string path_;
};

[[nodiscard]] std::string content(const std::string& path);
[[nodiscard]] bool exists(const std::string& path);
/// Whether the process is there and not a zombie.
[[nodiscard]] bool alive(pid_t pid);

class Command {
 public:
  /// The environment of this test program, with `changes` over it.
  explicit Command(std::vector<std::string> argv, Environment changes = {});
  /// Exactly this environment.
  static Command with_environment(std::vector<std::string> argv, Environment environment);
  ~Command();
  Command(Command&&) = default;

  [[nodiscard]] pid_t pid() const { return child_->pid(); }
  void signal(int number) const;
  /// How it ended; fails the test when it does not end in time.
  ExitStatus wait(std::chrono::milliseconds timeout = kWaitMax);
  [[nodiscard]] std::string out() const { return content(directory_->file("out")); }
  [[nodiscard]] std::string err() const { return content(directory_->file("err")); }
  /// Whether its stderr comes to hold `text`.
  [[nodiscard]] bool says(const std::string& text) const;

 private:
  struct Exact {};
  Command(Exact, std::vector<std::string> argv, const Environment& environment);

  std::unique_ptr<TemporaryDirectory> directory_;
  std::unique_ptr<boost::asio::io_context> io_;
  std::unique_ptr<Child> child_;
  std::optional<ExitStatus> status_;
};

}  // namespace ddprun::test

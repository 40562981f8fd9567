// Link: this end of a socket to a template or to a worker that waits. Messages keep their borders
// and carry descriptors. Thread rule: the io_context's thread. Ownership: owns the descriptor;
// the process with the other end reads the end of the link when this is destroyed.
#pragma once

#include <unistd.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ddprun::warm {

class Link {
 public:
  /// A new pair of sockets. The other end is CLOEXEC, and the caller closes it.
  struct Pair {
    std::unique_ptr<Link> link;
    int other = -1;
  };
  [[nodiscard]] static Result<Pair> make(const boost::asio::any_io_executor& executor);

  /// False when the other end is gone, or does not read: a message is small and comes alone.
  [[nodiscard]] bool send(std::string_view text, const std::vector<int>& descriptors = {});
  /// Calls `handler` for each message, and with none, once, when the other end is closed. Not after
  /// the destruction of this.
  using Handler = std::function<void(const std::optional<std::string>&)>;
  void receive(Handler handler);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

 private:
  struct Shared;
  explicit Link(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  static void wait(std::shared_ptr<Shared> shared);

  std::shared_ptr<Shared> shared_;
};

/// Those that are passed on to another process: closes them when what they were sent or given to
/// has them.
class Descriptors {
 public:
  Descriptors() = default;
  ~Descriptors() {
    for (const int one : all_) ::close(one);
  }
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;
  int add(int one) {
    if (one >= 0) all_.push_back(one);
    failed_ = failed_ || one < 0;
    return one;
  }
  /// Whether one of them was none.
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] const std::vector<int>& all() const { return all_; }

 private:
  std::vector<int> all_;
  bool failed_ = false;
};

}  // namespace ddprun::warm

// Swarm: many raw c10d connections on one epoll set, each following a script. Generates the load
// for the store's benchmark; checks the length of each reply and does little else. One thread, no
// Asio.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::store::bench {

/// The next request of a connection and the size of its reply. The bytes must stay valid until they
/// are sent.
struct Step {
  std::string_view request;
  std::size_t reply_bytes = 0;
};

struct Script {
  /// Sets `step` to step `at` of `connection`; returns false if the connection is done.
  std::function<bool(std::size_t connection, std::size_t at, Step& step)> next;
  /// Checks the first 64 bytes of the reply to that step; returns false if they are wrong.
  std::function<bool(std::size_t connection, std::size_t at, std::string_view reply)> check;
};

/// Failures (a wrong reply, a close, a timeout) throw std::runtime_error.
class Swarm {
 public:
  Swarm(std::string host, std::uint16_t port);
  ~Swarm();
  Swarm(const Swarm&) = delete;
  Swarm& operator=(const Swarm&) = delete;

  /// Opens `count` connections, at most `in_flight` at a time, each of which starts the script once
  /// connected. Returns when all have finished it.
  void connect_and_run(std::size_t count, std::size_t in_flight, const Script& script);
  /// Runs the script on connections `first` .. `first + count - 1`; returns when all have finished.
  void run(std::size_t first, std::size_t count, const Script& script);
  /// Like run(), but returns once all have sent their first request; finish() waits for the rest.
  void begin(std::size_t first, std::size_t count, const Script& script);
  void finish();

  [[nodiscard]] std::size_t size() const { return peers_.size(); }
  /// If set, receives the seconds from request to complete reply of every step with a reply.
  void record(std::vector<float>* latencies_s) { latencies_s_ = latencies_s; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer {
    int fd = -1;
    bool connecting = false;
    bool writing = false;  // waiting for EPOLLOUT
    bool done = true;
    std::size_t at = 0;
    std::string_view unsent;
    std::size_t missing = 0;
    std::string head;  // first bytes of the reply
    Clock::time_point begun;
  };

  void open_next();
  void advance(std::size_t connection);
  bool send_some(std::size_t connection);
  void receive_some(std::size_t connection);
  void reply_complete(std::size_t connection);
  void watch(std::size_t connection, std::uint32_t events, int operation);
  void wait_for_events();

  std::string host_;
  std::uint16_t port_;
  int epoll_;
  std::vector<Peer> peers_;
  std::vector<char> buffer_;
  const Script* script_ = nullptr;
  std::size_t running_ = 0;
  std::size_t to_open_ = 0;
  std::vector<float>* latencies_s_ = nullptr;
};

}  // namespace ddprun::store::bench

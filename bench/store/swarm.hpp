// Swarm: many raw c10d connections on one epoll set, each following a script. The load side of the
// store's benchmark: it knows how long each reply must be and checks it, and does little else. One
// thread, no Asio.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::store::bench {

/// What a connection sends next and how many bytes must come back. The bytes stay valid until they
/// are sent.
struct Step {
  std::string_view request;
  std::size_t reply_bytes = 0;
};

struct Script {
  /// Fills in step number `at` of connection `who`; false: this connection is done.
  std::function<bool(std::size_t who, std::size_t at, Step& step)> next;
  /// Looks at the first 64 bytes of the reply to that step; false: it is wrong.
  std::function<bool(std::size_t who, std::size_t at, std::string_view reply)> check;
};

/// Any failure (a wrong reply, a close, a stall) throws std::runtime_error.
class Swarm {
 public:
  Swarm(std::string host, std::uint16_t port);
  ~Swarm();
  Swarm(const Swarm&) = delete;
  Swarm& operator=(const Swarm&) = delete;

  /// Connects `count` more, at most `in_flight` at a time, and lets each begin the script as soon
  /// as it is. Returns when all are done with it.
  void connect_and_run(std::size_t count, std::size_t in_flight, const Script& script);
  /// Runs the script on the connections `first` .. `first + count - 1` and returns when all are
  /// done.
  void run(std::size_t first, std::size_t count, const Script& script);
  /// As run(), but returns once all have sent their first request; finish() waits for the rest.
  void begin(std::size_t first, std::size_t count, const Script& script);
  void finish();

  [[nodiscard]] std::size_t size() const { return peers_.size(); }
  /// Seconds from request to the end of its reply, of every step with a reply, while set.
  void record(std::vector<float>* latencies_s) { latencies_s_ = latencies_s; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer {
    int fd = -1;
    bool connecting = false;
    bool writing = false;  // epoll watches for room
    bool done = true;
    std::size_t at = 0;
    std::string_view unsent;
    std::size_t missing = 0;
    std::string head;  // of the reply
    Clock::time_point begun;
  };

  void open_next();
  void advance(std::size_t who);
  bool send_some(std::size_t who);
  void receive_some(std::size_t who);
  void reply_complete(std::size_t who);
  void watch(std::size_t who, std::uint32_t events, int operation);
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

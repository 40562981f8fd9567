// Connects to the first of several addresses that answers: attempts to both address families run in
// parallel, started in a stagger (Happy Eyeballs, RFC 8305). Thread rule: the io_context's thread.
// `done` is called once, never from inside start(), and not after cancel(). Errors list every
// address tried with the system's error.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "net/resolve.hpp"

namespace ddprun::net {

// Delay before the next address is tried while the current one has not answered (RFC 8305, section
// 5, allows 100 ms to 2 s).
inline constexpr Duration kConnectStagger = std::chrono::milliseconds(100);
// Maximum number of addresses tried per attempt; further addresses are ignored.
inline constexpr std::size_t kConnectCandidatesMax = 16;

/// Alternates between the address families, starting with that of the first address (RFC 8305,
/// section 4).
[[nodiscard]] std::vector<boost::asio::ip::tcp::endpoint> interleave_families(
    const Addresses& addresses, std::uint16_t port);

/// "127.0.0.1:29400: connection refused"
[[nodiscard]] std::string evidence(const std::string& peer, const boost::system::error_code& why);

/// Connecting to an unused port of the ephemeral range can pick that same port as the source: TCP
/// then connects the socket to itself. Treated as refused.
[[nodiscard]] bool is_self_connection(const boost::asio::ip::tcp::socket& socket,
                                      const boost::asio::ip::tcp::endpoint& peer);

struct Connected {
  boost::asio::ip::tcp::socket socket;  // CLOEXEC, non-blocking, with TCP_NODELAY
  boost::asio::ip::tcp::endpoint peer;
};

class Connector : public std::enable_shared_from_this<Connector> {
 public:
  using Done = std::function<void(Result<Connected>)>;

  Connector(boost::asio::any_io_executor executor,
            std::vector<boost::asio::ip::tcp::endpoint> candidates, TimePoint deadline, Done done);
  void start();
  void cancel();
  /// Whether the kernel of every address refused: no process listens there.
  [[nodiscard]] bool was_refused() const { return refused_ == attempts_.size(); }

 private:
  struct Attempt {
    Attempt(const boost::asio::any_io_executor& executor, boost::asio::ip::tcp::endpoint to)
        : where(std::move(to)), socket(executor) {}
    boost::asio::ip::tcp::endpoint where;
    boost::asio::ip::tcp::socket socket;
  };

  void start_next();
  void on_connected(Attempt& attempt, boost::system::error_code why);
  void on_deadline();
  void fail(Attempt& attempt, const std::string& sentence);
  void finish(Result<Connected> result);

  std::deque<Attempt> attempts_;
  std::size_t started_ = 0;
  std::size_t running_ = 0;
  boost::asio::steady_timer stagger_;
  boost::asio::steady_timer deadline_;
  std::string failures_;
  std::size_t refused_ = 0;
  Done done_;  // null once finished
};

}  // namespace ddprun::net

// Connects to a host: looks its name up, then takes the first of several addresses that answers;
// attempts to both address families run in parallel, started in a stagger (Happy Eyeballs, RFC
// 8305). Thread rule: the io_context's thread. `done` is called once, never from inside start(),
// and not after cancel() or destruction. Errors list every address tried with the system's error.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace ddprun::net {

using Addresses = std::vector<boost::asio::ip::address>;
/// May block; called on a dedicated thread.
using Lookup = std::function<Result<Addresses>(const std::string& name)>;

/// The addresses of a literal (IPv6 without brackets) or of `localhost`; nullopt for a name.
[[nodiscard]] std::optional<Addresses> addresses_without_lookup(const std::string& host);

/// Calls getaddrinfo and keeps its order. Errors state the name and the system's error.
[[nodiscard]] Result<Addresses> resolve_blocking(const std::string& name);

/// Resolves a host name without blocking the io_context's thread. Literals and `localhost` need no
/// lookup. For any other name a detached thread runs getaddrinfo; it accesses only its own result
/// and the pipe that signals completion, and ends with the lookup, so a hanging name service does
/// not delay the exit of the process: Asio's async_resolve joins its thread in the destructor of
/// the io_context, and getaddrinfo_a cannot be cancelled.
class Resolver {
 public:
  using Done = std::function<void(Result<Addresses>)>;

  Resolver(boost::asio::any_io_executor executor, std::string host, Lookup how = resolve_blocking);
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  /// Starts a lookup and replaces an earlier one. Joins a lookup that is still running, so there is
  /// at most one thread. Fails when `deadline` passes.
  void start(TimePoint deadline, Done done);
  void cancel();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

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

// WhoAnswers: finds out what kind of server accepted an agent's connection without answering as a
// coordinator. torchrun's c10d store keeps silent or resets such a connection, and an HTTP server
// may wait for more, like a coordinator that is suspended or has just ended: without asking, an
// agent would retry until join_timeout.
// Thread rule: the io_context's thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"

namespace ddprun::client {

/// For each of its two questions.
inline constexpr Duration kAskMax = std::chrono::milliseconds(300);

class WhoAnswers : public std::enable_shared_from_this<WhoAnswers> {
 public:
  /// With a sentence if it is a c10d store or speaks HTTP, and is not a coordinator; else empty.
  using Done = std::function<void(const std::string& sentence)>;

  WhoAnswers(boost::asio::any_io_executor executor, boost::asio::ip::tcp::endpoint peer, Done done);
  /// Calls `done` once, within 2 * kAskMax and never from inside.
  void start();
  /// `done` is not called any more.
  void cancel();

 private:
  static boost::asio::awaitable<void> run(std::shared_ptr<WhoAnswers> self);
  [[nodiscard]] boost::asio::awaitable<std::string> ask(std::string request, std::size_t enough);

  boost::asio::any_io_executor executor_;
  boost::asio::ip::tcp::endpoint peer_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer limit_;
  Done done_;
};

/// For a peer that sent bytes that no coordinator sends.
[[nodiscard]] std::string not_a_coordinator(const std::string& peer);
/// For a peer that does not know the secret of the run.
[[nodiscard]] std::string has_another_secret(const std::string& peer);
/// For one whose certificate is not accepted, or that does not accept ours; `cause` says why.
[[nodiscard]] std::string has_no_trust(const std::string& peer, const std::string& cause);

}  // namespace ddprun::client

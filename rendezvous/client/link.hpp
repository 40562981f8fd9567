// One open connection to a coordinator: frames out, messages in. Decides nothing. Thread rule: the
// io_context's thread. Ownership: shared with its own pending operations; notifies its user until
// leave() or close(); after that only wrote() is called.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "net/connect.hpp"
#include "net/tls.hpp"
#include "rendezvous/protocol/frame.hpp"
#include "rendezvous/protocol/limits.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace ddprun::client {

class Link;

/// Bytes that the coordinator has not read; above this the link is closed with that evidence. The
/// largest report fits.
inline constexpr std::size_t kUnsentBytesMax = 4 * protocol::kFrameBytesMax;
/// At the end, a peer that reads nothing for this long is no longer waited for.
inline constexpr Duration kStallMax = std::chrono::seconds(1);

class LinkUser {
 public:
  virtual void heard(protocol::Message message) = 0;
  /// The link ended: the address and the cause. No notification follows.
  virtual void lost(const std::string& evidence) = 0;
  /// The same for a peer that never sent a message: it is most likely not a coordinator.
  virtual void met_another_server(const std::string& sentence) = 0;
  /// The peer read bytes, or the link was closed (is_closed).
  virtual void wrote(Link& link) = 0;

 protected:
  ~LinkUser() = default;
};

class Link : public std::enable_shared_from_this<Link> {
 public:
  /// `tls`: a session that connects; null: clear text.
  Link(net::Connected connected, LinkUser& user, std::unique_ptr<net::TlsSession> tls = nullptr);

  /// Queues the magic. Nothing is written until start(), so that the first message shares its
  /// segment.
  void begin();
  /// Writes what is queued and reads from now on.
  void start();
  void send(const protocol::Message& message);
  /// Once everything is written, or when the peer has read nothing for kStallMax.
  void close();
  /// Immediately; the user is not notified any more.
  void leave();

  [[nodiscard]] std::size_t unsent() const { return unsent_.size() - sent_; }
  [[nodiscard]] bool is_closed() const { return state_ == State::kClosed; }

 private:
  enum class State { kOpen, kClosing, kClosed };

  void read();
  void on_readable();
  bool receive_some();
  bool take(std::string_view bytes);
  bool deliver();
  void queue(std::string_view bytes);
  void write();
  void await_room();
  void watch_for_stall();
  void lose(const std::string& evidence);
  void lose_later(std::string evidence);
  void lose_to_invalid_data(const std::string& detail);
  void meet(const std::string& sentence);
  void close_now();

  boost::asio::ip::tcp::socket socket_;
  LinkUser* user_;  // null after leave()
  const std::string peer_;
  State state_ = State::kOpen;
  bool corked_ = true;  // queued data is written together, later
  bool awaiting_room_ = false;
  protocol::FrameReader reader_;
  std::unique_ptr<net::TlsSession> tls_;
  std::string unsealed_;  // waits for the end of the handshake
  bool known_ = false;    // a message of this protocol was received
  std::string unsent_;
  std::size_t sent_ = 0;  // of unsent_
  std::uint64_t written_ = 0;
  std::string failure_;  // of a write: reported once all received data is read
  std::unique_ptr<boost::asio::steady_timer> stall_;
};

}  // namespace ddprun::client

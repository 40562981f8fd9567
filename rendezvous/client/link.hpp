// One open connection to a coordinator: frames out, messages in. Decides nothing. Thread rule: the
// io_context's thread. Ownership: shared with its own pending operations; tells its user until
// leave() or close() and then never again, save wrote().
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>

#include "net/connect.hpp"
#include "rendezvous/protocol/frame.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace ddprun::client {

class Link;

class LinkUser {
 public:
  virtual void heard(protocol::Message message) = 0;
  /// The last thing said of an open link: it ended, with the address and the cause.
  virtual void lost(const std::string& evidence) = 0;
  /// The same of a peer that has not said one message: it is most likely no coordinator at all.
  virtual void met_stranger(const std::string& sentence) = 0;
  /// The peer took bytes, or the link was closed (is_closed).
  virtual void wrote(Link& link) = 0;

 protected:
  ~LinkUser() = default;
};

class Link : public std::enable_shared_from_this<Link> {
 public:
  Link(net::Connected connected, LinkUser& user);

  /// Queues the magic. Nothing is written until start(), so that the first message goes with it.
  void begin();
  /// Writes what is queued and reads from now on.
  void start();
  void send(const protocol::Message& message);
  /// Once everything is written, or at once if the peer takes nothing for kStallMax.
  void close();
  /// At once; the user hears nothing more.
  void leave();

  [[nodiscard]] std::size_t unsent() const { return unsent_.size() - sent_; }
  [[nodiscard]] bool is_closed() const { return state_ == State::kClosed; }

 private:
  enum class State { kOpen, kClosing, kClosed };

  void read();
  void on_readable();
  bool receive_some();
  bool deliver();
  void write();
  void await_room();
  void watch_for_stall();
  void lose(const std::string& evidence);
  void lose_later(std::string evidence);
  void lose_to_nonsense(const std::string& detail);
  void close_now();

  boost::asio::ip::tcp::socket socket_;
  LinkUser* user_;  // null after leave()
  const std::string peer_;
  State state_ = State::kOpen;
  bool corked_ = true;  // what is queued is written together, a little later
  bool awaiting_room_ = false;
  protocol::FrameReader reader_;
  bool known_ = false;  // a message of this protocol has come
  std::string unsent_;
  std::size_t sent_ = 0;  // of unsent_
  std::uint64_t written_ = 0;
  std::string failure_;  // of a write: told when everything that had arrived is read
  std::unique_ptr<boost::asio::steady_timer> stall_;
};

}  // namespace ddprun::client

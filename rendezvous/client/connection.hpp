// Connections: the sockets behind Membership's Connect, SendMessage and CloseLink. Resolves the
// coordinator's name at every attempt, tries both address families in parallel, sends the magic and
// frames, and turns received data into client::Events. Decides nothing.
//
// Thread rule: the io_context's thread (names are looked up beside it, by a thread that touches
// nothing else). Ownership: owns its sockets; `sink` is called from the io_context only, never from
// inside a call here, and never after the destructor.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "net/tls.hpp"
#include "rendezvous/client/coordinator_link.hpp"

namespace ddprun::client {

/// How links to a coordinator are sealed: both sides have to know the secret, or to show
/// certificates.
struct LinkSecret {
  net::SharedTlsContext tls = nullptr;  // null: clear text
  std::string run = {};                 // the run id
  // Which the certificate has to name where Connections was aimed first; empty, and after aim() at
  // another one: the host that is connected to.
  std::string host = {};
};

class Connections final : public CoordinatorLink {
 public:
  /// `host`: a name or a literal without brackets.
  Connections(boost::asio::any_io_executor executor, std::string host, std::uint16_t port,
              Sink sink, LinkSecret secret = {});
  /// Closes everything immediately; unsent data is lost (see flush).
  ~Connections() override;

  /// Answered by LinkUp, or by LinkDown with the cause (the name, the address tried, the error).
  /// One link at a time: an open link is closed and produces no more events.
  void connect(LinkId link) override;
  void aim(const std::string& host, std::uint16_t port, const std::string& why = "") override;
  /// Queued in order. Dropped unless this link is up.
  void send(LinkId link, const protocol::Message& message) override;
  /// After the queue is written, or as soon as the peer has read nothing for a second. No LinkDown
  /// follows.
  void close(LinkId link) override;
  /// Completes when the queue is written, after a second in which the peer read nothing, or after
  /// kFlushMax.
  [[nodiscard]] boost::asio::awaitable<void> flush() override;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace ddprun::client

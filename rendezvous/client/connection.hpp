// Connections: the sockets behind Membership's Connect, SendMessage and CloseLink. Resolves the
// coordinator's name anew at every attempt, tries both address families side by side, sends the
// magic and frames, and turns what arrives into client::Events. Decides nothing.
//
// Thread rule: the io_context's thread (names are looked up beside it, without a second thread of
// our own that could touch anything). Ownership: owns its sockets; `sink` is called from the
// io_context only, never from inside a call here, and never after the destructor.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "rendezvous/client/coordinator_link.hpp"

namespace ddprun::client {

class Connections final : public CoordinatorLink {
 public:
  /// `host`: a name or a literal without brackets.
  Connections(boost::asio::any_io_executor executor, std::string host, std::uint16_t port,
              Sink sink);
  /// Closes everything at once; what was not written yet is lost (see flush).
  ~Connections() override;

  /// Answered by LinkUp, or by LinkDown with the cause (the name, the address tried, the error).
  /// One link at a time: a link that is still open is closed, and nothing more is heard of it.
  void connect(LinkId link) override;
  /// Queued in order. Dropped when the link is not the one that is up.
  void send(LinkId link, const protocol::Message& message) override;
  /// After what is queued was written, or at once if the peer takes nothing for a second. No
  /// LinkDown follows.
  void close(LinkId link) override;
  /// Completes when nothing is left to write, or after a second in which the peer took nothing.
  [[nodiscard]] boost::asio::awaitable<void> flush() override;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace ddprun::client

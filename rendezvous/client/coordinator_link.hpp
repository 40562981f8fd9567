// CoordinatorLink: the agent's end of its link to the coordinator, as Membership's Connect,
// SendMessage and CloseLink ask for it. Over TCP (connection.hpp) or in process, on a single node.
//
// Thread rule: the io_context's thread. The sink is called from the io_context only, never from
// inside a call here, and never after the destructor.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "rendezvous/client/membership/events.hpp"

namespace ddprun::client {

class CoordinatorLink {
 public:
  /// Takes LinkUp, LinkDown and Incoming.
  using Sink = std::function<void(const Event& event)>;

  CoordinatorLink() = default;
  CoordinatorLink(const CoordinatorLink&) = delete;
  CoordinatorLink& operator=(const CoordinatorLink&) = delete;
  virtual ~CoordinatorLink() = default;

  /// Answered by LinkUp, or by LinkDown with the cause. One link at a time: an open link is closed
  /// and produces no more events.
  virtual void connect(LinkId link) = 0;
  /// Where connect() goes from now on: a name or a literal, without brackets. Empty: nowhere, and
  /// each attempt fails with `why`. Not for links that are in this process.
  virtual void aim(const std::string& /*host*/, std::uint16_t /*port*/,
                   const std::string& /*why*/ = "") {}
  /// Queued in order. Dropped unless this link is up.
  virtual void send(LinkId link, const protocol::Message& message) = 0;
  /// After the queue is written. No LinkDown follows.
  virtual void close(LinkId link) = 0;
  /// Completes when the queue is written, or when the peer has read nothing for a while.
  [[nodiscard]] virtual boost::asio::awaitable<void> flush() = 0;
};

}  // namespace ddprun::client

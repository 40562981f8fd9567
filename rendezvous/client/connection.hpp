// CoordinatorLink: the agent's end of its link to the coordinator, as Membership's Connect,
// SendMessage and CloseLink ask for it. Over TCP, or in process on a single node
// (agent/coordinate/in_process_link.hpp). Decides nothing.
//
// Thread rule: the io_context's thread (names are looked up beside it, by a thread that touches
// nothing else). The sink is called from the io_context only, never from inside a call here, and
// never after the destructor.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "net/tls.hpp"
#include "rendezvous/client/membership/events.hpp"

namespace ddprun::client {

/// At the end, the time for all that is queued, however steadily the peer reads.
inline constexpr Duration kFlushMax = std::chrono::seconds(5);

class CoordinatorLink {
 public:
  /// Takes LinkUp, LinkDown and Incoming.
  using Sink = std::function<void(const Event& event)>;

  CoordinatorLink() = default;
  CoordinatorLink(const CoordinatorLink&) = delete;
  CoordinatorLink& operator=(const CoordinatorLink&) = delete;
  virtual ~CoordinatorLink() = default;

  /// Answered by LinkUp, or by LinkDown with the cause (the name, the address tried, the error).
  /// One link at a time: an open link is closed and produces no more events.
  virtual void connect(LinkId link) = 0;
  /// Where connect() goes from now on: a name or a literal, without brackets. Empty: nowhere, and
  /// each attempt fails with `why`. Not for links that are in this process.
  virtual void aim(const std::string& /*host*/, std::uint16_t /*port*/,
                   const std::string& /*why*/ = "") {}
  /// Queued in order. Dropped unless this link is up.
  virtual void send(LinkId link, const protocol::Message& message) = 0;
  /// After the queue is written, or as soon as the peer has read nothing for kStallMax. No LinkDown
  /// follows.
  virtual void close(LinkId link) = 0;
  /// Completes when the queue is written, after kStallMax in which the peer read nothing, or after
  /// kFlushMax.
  [[nodiscard]] virtual boost::asio::awaitable<void> flush() = 0;
};

/// How links to a coordinator are sealed: both sides have to know the secret, or to show
/// certificates.
struct LinkSecret {
  net::SharedTlsContext tls = nullptr;  // null: clear text
  std::string run = {};                 // the run id
  // Which the certificate has to name where the link was aimed first; empty, and after aim() at
  // another one: the host that is connected to.
  std::string host = {};
};

/// A link over TCP. Resolves the coordinator's name at every attempt, tries both address families
/// in parallel, sends the magic and frames, and turns received data into Events. `host`: a name or
/// a literal without brackets. Its end closes everything immediately; unsent data is lost (see
/// flush).
[[nodiscard]] std::shared_ptr<CoordinatorLink> make_tcp_link(boost::asio::any_io_executor executor,
                                                             const std::string& host,
                                                             std::uint16_t port,
                                                             CoordinatorLink::Sink sink,
                                                             LinkSecret secret = {});

}  // namespace ddprun::client

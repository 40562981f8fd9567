// InProcessLink: the link of a single node to its coordinator, which is a round::Run in the same
// object: no socket, no codec, no port. A single node is a run with one member, so that one rule
// decides about restarts and how a run ends. The link cannot fail, hence no heartbeats.
//
// Thread rule: the io_context's thread. Every event is posted, so that the agent is never called
// from inside one of its own calls.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>

#include "base/types.hpp"
#include "rendezvous/client/coordinator_link.hpp"

namespace ddprun {

class InProcessLink final : public client::CoordinatorLink {
 public:
  InProcessLink(boost::asio::any_io_executor executor, const RunId& run, Sink sink);
  ~InProcessLink() override;

  void connect(client::LinkId link) override;
  void send(client::LinkId link, const protocol::Message& message) override;
  void close(client::LinkId link) override;
  [[nodiscard]] boost::asio::awaitable<void> flush() override;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace ddprun

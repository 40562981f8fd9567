// The link of a single node to its coordinator, which is a round::Run in the same object: no
// socket, no codec, no port. A single node is a run with one member, so that one rule decides about
// restarts and how a run ends. The link cannot fail, hence no heartbeats. Thread rule: the
// io_context's thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>

#include "base/types.hpp"
#include "rendezvous/client/connection.hpp"

namespace ddprun {

[[nodiscard]] std::unique_ptr<client::CoordinatorLink> make_in_process_link(
    boost::asio::any_io_executor executor, const RunId& run, client::CoordinatorLink::Sink sink);

}  // namespace ddprun

// Addresses whose connections make more work than a turn has time for.
#include <boost/asio/post.hpp>

#include "rendezvous/store/server_impl.hpp"

namespace ddprun::store {

// Out of the epoll set, which would report it again and again meanwhile.
void Server::Impl::wait_turn(Session& session) {
  if (std::exchange(session.waits_turn, true)) return;
  reactor_.unwatch(session);
  turns_.wait(session.share->number, session.id);
  serve_later();
}

// One address at a time: what others have sent is read in between.
void Server::Impl::serve_later() {
  if (closed_ || turns_.empty() || std::exchange(turn_posted_, true)) return;
  boost::asio::post(executor_, [self = shared_from_this()] {
    self->turn_posted_ = false;
    if (self->closed_) return;
    self->serve_one_turn();
    self->serve_later();
  });
}

void Server::Impl::serve_one_turn() {
  const Turns::Share share = turns_.next();
  while (const auto id = turns_.take(share)) {
    Session* session = sessions_.find(*id);
    if (session == nullptr) continue;
    const TimePoint began = Clock::now();
    serve_in_turn(*session);
    turns_.spent(share, Clock::now() - began);
  }
  session_quota_used_ = false;  // the reactor serves others
  return_memory();
}

// What it waited for is not known any more: replies to send, or bytes to read.
void Server::Impl::serve_in_turn(Session& session) {
  session.waits_turn = false;
  const std::size_t used_before = memory_.used();
  End end = guarded([&] { return resume(session); });
  const bool reads = end == End::kAlive && !session.paused && !session.eof;
  if (reads) end = guarded([&] { return receive(session); });
  count_added(session, used_before);
  settle(session, end);
  flush_queued();
}

}  // namespace ddprun::store

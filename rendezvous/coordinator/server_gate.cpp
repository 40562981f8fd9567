#include <poll.h>
#include <spdlog/logger.h>

#include <utility>

#include "rendezvous/coordinator/server_impl.hpp"

namespace ddprun::coordinator {

namespace {

/// A node's word that its workers are gone takes another way than the first bytes of a new one.
constexpr Duration kLateKept = std::chrono::seconds(1);

bool has_gone(int socket) {
  pollfd one{socket, POLLRDHUP, 0};
  return ::poll(&one, 1, 0) > 0;
}

}  // namespace

void Server::Impl::close_gate(Round ended) {
  std::vector<round::LeftOnNode> nodes;
  if (!runs_.empty()) nodes = runs_.begin()->second->run.left_of(ended);  // a static run is alone
  gate_told_ = false;
  gate_.begin(ended, nodes);
}

void Server::Impl::wait_at_gate(Link& link) {
  link.state = LinkState::kAtGate;
  forget_due(link);
  at_gate_.emplace_back(Clock::now(), link.id);
  watch(link);
  if (at_gate_.size() == 1) arm_gate();
}

void Server::Impl::arm_gate() {
  gate_timer_.expires_after(kLateKept);
  gate_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || self->closed_) return;
    self->drain();
    if (self->closed_) return;
    self->pass_gate();
    self->tell_who_is_waited_for();
    self->settle_all();
    if (!self->at_gate_.empty()) self->arm_gate();
  });
}

void Server::Impl::tell_who_is_waited_for() {
  if (at_gate_.empty() || !options_.log || std::exchange(gate_told_, true)) return;
  options_.log->warn(
      "workers of round {} wait for the store: those of the round before have not ended on {}",
      gate_.ended().value() + 1, gate_.awaited());
}

/// After the messages of a batch.
void Server::Impl::look_at_gate() {
  if (gate_.is_open()) return;
  bool moved = runs_.empty();
  for (const auto& [name, entry] : runs_) moved = gate_.look(entry->run) || moved;
  if (moved) pass_gate();
}

/// Lets clients in that can be of the new round alone. One that has gone was of the old one: what
/// it has sent has no effect.
void Server::Impl::pass_gate() {
  const TimePoint now = Clock::now();
  for (const auto& [since, id] : std::exchange(at_gate_, {})) {
    Link* link = find(id);
    if (link == nullptr || link->state != LinkState::kAtGate) continue;
    using Answer = StoreGate::Answer;
    const Answer answer = gate_.of(net::address_text(link->from));
    if (answer == Answer::kWelcome && !has_gone(link->fd)) {
      adopt_in_store(*link);
    } else if (answer == Answer::kWelcome ||
               (answer == Answer::kIsLate && now - since >= kLateKept)) {
      log_once(*link, "a client of the round before, whose store is closed");
      mark_closed(*link);
    } else {
      at_gate_.emplace_back(since, id);
    }
  }
}

}  // namespace ddprun::coordinator

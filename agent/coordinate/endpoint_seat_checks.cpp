// Whether other nodes reach the coordinator of this process where they are told to.
#include <utility>

#include "agent/coordinate/endpoint_seat.hpp"
#include "agent/coordinate/link_messages.hpp"
#include "agent/coordinate/link_secret.hpp"

namespace ddprun {

void EndpointSeat::check_endpoint() {
  if (here_ == nullptr) return;
  const RendezvousConfig& rendezvous = *config_.rendezvous;
  if (!rendezvous.given_host.empty()) check_given_address();
  for (const std::string& literal : rendezvous.namesakes) check_namesake(literal);
}

void EndpointSeat::check_given_address() {
  const RendezvousConfig& rendezvous = *config_.rendezvous;
  const CoordinatorAddress given{rendezvous.given_host, rendezvous.coordinator.port};
  const auto unanswered = [this, given](const std::string& evidence) {
    checks_.clear();
    user_.seat_note("no connection to " + to_text(given) + " reaches this coordinator (" +
                    evidence + "): other nodes that use this address may not find it");
  };
  checks_.push_back(std::make_unique<EndpointCheck>(
      executor_, link_secret_of(config_), given, here_->nonce(), kCheckSilence,
      EndpointCheck::Tells{[this, given](const protocol::Probe&) { join_other(given); },
                           unanswered}));
}

/// The endpoint's name has an address of another node, too, as that of a headless service has. Of
/// coordinators that see each other one that has had a round stays, else the one with the least
/// nonce, and the name leads to it once no other one listens.
void EndpointSeat::check_namesake(const std::string& literal) {
  const CoordinatorAddress& endpoint = config_.rendezvous->coordinator;
  client::LinkSecret secret = link_secret_of(config_);
  secret.host = endpoint.host;
  const auto other = [this, endpoint, own = here_->nonce()](const protocol::Probe& answer) {
    if (answer.had_round || answer.nonce < own) join_other(endpoint);
  };
  checks_.push_back(std::make_unique<EndpointCheck>(
      executor_, std::move(secret), CoordinatorAddress{literal, endpoint.port}, here_->nonce(),
      Duration::max(), EndpointCheck::Tells{other, [](const std::string&) {}}));
}

// The agent goes there before its links to the coordinator here end.
void EndpointSeat::join_other(const CoordinatorAddress& other) {
  checks_.clear();
  user_.seat_note("another process coordinates the run at " + to_text(other) +
                  ": this node joins it");
  make_ = nullptr;
  if (stands_by()) {
    close();
    listen();
  }
  user_.joins_other(other);
  here_.reset();
}

}  // namespace ddprun

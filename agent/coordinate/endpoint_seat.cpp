#include "agent/coordinate/endpoint_seat.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "agent/coordinate/endpoint_links.hpp"
#include "agent/coordinate/link_messages.hpp"

namespace ddprun {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr std::size_t kRivalsMax = 8;

}  // namespace

EndpointSeat::EndpointSeat(asio::any_io_executor executor, const LaunchConfig& config,
                           Coordinator here, MakeCoordinator make, OpenCoordinator open,
                           SeatUser& user)
    : executor_(executor),
      config_(config),
      user_(user),
      here_(std::move(here)),
      make_(std::move(make)),
      standby_(executor, open),
      entry_(executor, std::move(open)) {
  if (stands_by() && here_ != nullptr) attend(*here_, config_.rendezvous->coordinator.port);
}

EndpointSeat::~EndpointSeat() = default;

coordinator::Server* EndpointSeat::here() const {
  return here_ != nullptr && here_->has_moved() ? nullptr : here_.get();
}

bool EndpointSeat::host() {
  if (here_ != nullptr || !make_) return false;
  auto made = make_(executor_);
  if (!made || *made == nullptr) return false;
  here_ = std::move(*made);
  if (stands_by()) attend(*here_, config_.rendezvous->coordinator.port);
  check_endpoint();
  user_.seat_note("no coordinator answered at this endpoint: this node runs the coordinator");
  return true;
}

std::uint16_t EndpointSeat::stand_by() {
  if (stands_by()) listen();
  return port_;
}

void EndpointSeat::listen() {
  const auto port = standby_.reserve(config_.store.listen_addr, port_);
  port_ = port ? *port : 0;  // without a port others find none here
  turns_away_ = false;
}

void EndpointSeat::observe(const client::Event& event) {
  if (!std::holds_alternative<client::Incoming>(event) || !user_.has_coordinator()) return;
  turn_away();
  if (is_candidate()) lead();
}

// Nodes that come while this one has its coordinator look for it elsewhere at once. After its loss
// they wait in the kernel, until this node is a candidate or has found another one.
void EndpointSeat::turn_away() {
  tcp::acceptor* listener = standby_.listener();
  if (listener == nullptr || std::exchange(turns_away_, true)) return;
  listener->async_wait(tcp::acceptor::wait_read, [this, weak = std::weak_ptr<int>(alive_)](
                                                     const boost::system::error_code& why) {
    if (weak.lock() != nullptr) turned_away(why);
  });
}

void EndpointSeat::turned_away(const boost::system::error_code& why) {
  if (why == asio::error::operation_aborted) return;
  turns_away_ = false;
  tcp::acceptor* listener = standby_.listener();
  if (why || listener == nullptr || !user_.has_coordinator()) return;
  boost::system::error_code failed;
  listener->non_blocking(true, failed);
  tcp::socket stranger(executor_);
  listener->accept(stranger, failed);
  // Without a descriptor: when the coordinator says something next.
  if (!failed || failed == asio::error::would_block) turn_away();
}

Result<void> EndpointSeat::coordinate(const client::Coordinate& order) {
  if (standby_.listener() == nullptr) {
    return Error(ErrorKind::kSystem, "this node has no port to coordinate the run");
  }
  standby_.listener()->cancel();
  turns_away_ = false;
  coordinator::SeatTerms terms;
  const auto abdicate = [this](const std::string& reason) {
    post([this, reason] {
      if (is_candidate()) user_.feed(client::Abdicated{reason});
    });
  };
  terms.candidate = {order.ended_author, order.why, order.origin};
  terms.on_abdicate = abdicate;
  auto opened = standby_.open(std::move(terms));
  if (opened) attend(*standby_.coordinator(), port_);
  return opened;
}

/// The candidate has a majority: it stays.
void EndpointSeat::lead() {
  std::vector<CoordinatorAddress> all{config_.rendezvous->coordinator};
  for (const client::Place& place : user_.former_coordinators()) {
    all.push_back({place.address, place.port});
  }
  if (serve_host_entry()) all.push_back(*config_.rendezvous->own_entry());
  notices_.clear();
  for (CoordinatorAddress& where : all) tell(std::move(where), {standby_.coordinator(), port_});
  if (here_ != nullptr) at_endpoint_ = std::move(here_);
  here_ = standby_.take();
  leads_ = true;
}

/// Nodes that come with a list of hosts ask for the run at this one's entry, too, and are sent on
/// from there. It takes none in. Another process may have the port: then there is no such place.
bool EndpointSeat::serve_host_entry() {
  const auto entry = config_.rendezvous->own_entry();
  if (!entry || !entry_.reserve(config_.store.listen_addr, entry->port)) return false;
  coordinator::SeatTerms terms;
  terms.may_act = [] { return false; };
  return entry_.open(std::move(terms)).has_value();
}

// The one that led the run frees its port, where this node stands by again.
void EndpointSeat::withdraw() {
  if (std::exchange(leads_, false)) here_ = std::move(at_endpoint_);
  close();
  listen();
}

void EndpointSeat::close() {
  notices_.clear();
  rivals_.clear();
  standby_.close();
  entry_.close();
}

/// A coordinator here has let the others find another one, because this node leaves. They may still
/// be at all places of this process where one was.
void EndpointSeat::resigned() {
  leads_ = false;
  close();
  here_.reset();
  at_endpoint_.reset();
  user_.seat_note("the other nodes look for another coordinator among them");
}

void EndpointSeat::post(std::function<void()> what) {
  asio::post(executor_, [weak = std::weak_ptr<int>(alive_), what = std::move(what)] {
    if (weak.lock() != nullptr) what();
  });
}

// Whether other nodes reach the coordinator of this process where they are told to.
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

/// A leader that began apart and does not know that it is to yield to this one is told so.
void EndpointSeat::attend(coordinator::Server& coordinator, std::uint16_t port) {
  const Leader leader{&coordinator, port};
  coordinator.on_rival([this, leader](const std::string& host, std::uint16_t at) {
    tell_rival({host, at}, leader);
  });
  coordinator.on_resigned([this] { post([this] { resigned(); }); });
}

// Where another coordinator of the run tells that it leads, too, that one is told next.
void EndpointSeat::tell(CoordinatorAddress where, Leader leader) {
  const auto hears = [this, leader](const protocol::Moved& moved) {
    tell_rival({moved.address, moved.port}, leader);
  };
  notices_.push_back(std::make_unique<EndpointNotice>(
      executor_, config_, std::move(where), [this, leader] { return says(leader); }, hears));
}

void EndpointSeat::tell_rival(CoordinatorAddress where, Leader leader) {
  const bool is_told = std::any_of(rivals_.begin(), rivals_.end(), [&where](const Rival& one) {
    return one.where.host == where.host && one.where.port == where.port;
  });
  if (is_told || rivals_.size() >= kRivalsMax) return;
  const auto ends = [this] {
    post([this] {
      std::erase_if(rivals_, [](const Rival& one) { return one.notice->has_ended(); });
    });
  };
  auto notice = std::make_unique<EndpointNotice>(
      executor_, config_, where, [this, leader] { return says(leader); }, nullptr, ends);
  rivals_.push_back({std::move(where), std::move(notice)});
}

std::optional<protocol::Lead> EndpointSeat::says(const Leader& leader) const {
  const auto led = leader.coordinator->led();
  if (!led) return std::nullopt;
  return protocol::Lead{config_.run_id, led->round, leader.port, led->origin,
                        command_key(config_.workers)};
}

}  // namespace ddprun

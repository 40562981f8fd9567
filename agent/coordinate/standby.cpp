#include "agent/coordinate/standby.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "agent/coordinate/link_messages.hpp"

namespace ddprun {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {
constexpr std::size_t kRivalsMax = 8;
}  // namespace

Standby::Standby(asio::any_io_executor executor, const LaunchConfig& config, OpenCoordinator open,
                 StandbyUser& user)
    : executor_(executor),
      config_(config),
      user_(user),
      seat_(executor, open),
      entry_(executor, std::move(open)) {}

Standby::~Standby() = default;

std::uint16_t Standby::listen() {
  const auto port = seat_.reserve(config_.store.listen_addr, port_);
  port_ = port ? *port : 0;
  turns_away_ = false;
  return port_;
}

void Standby::observe(const client::Event& event) {
  if (std::holds_alternative<client::Incoming>(event) && user_.has_coordinator()) turn_away();
}

// Who comes while this node has its coordinator looks for it elsewhere at once. After its loss they
// wait in the kernel, until this node is a candidate or has found another one.
void Standby::turn_away() {
  tcp::acceptor* listener = seat_.listener();
  if (listener == nullptr || std::exchange(turns_away_, true)) return;
  listener->async_wait(tcp::acceptor::wait_read, [this, weak = std::weak_ptr<int>(alive_)](
                                                     const boost::system::error_code& why) {
    if (weak.lock() != nullptr) turned_away(why);
  });
}

void Standby::turned_away(const boost::system::error_code& why) {
  if (why == asio::error::operation_aborted) return;
  turns_away_ = false;
  tcp::acceptor* listener = seat_.listener();
  if (why || listener == nullptr || !user_.has_coordinator()) return;
  boost::system::error_code failed;
  listener->non_blocking(true, failed);
  tcp::socket stranger(executor_);
  listener->accept(stranger, failed);
  // Without a descriptor: when the coordinator says something next.
  if (!failed || failed == asio::error::would_block) turn_away();
}

Result<void> Standby::coordinate(const client::Coordinate& order) {
  if (seat_.listener() == nullptr) {
    return Error(ErrorKind::kSystem, "this node has no port to coordinate the run");
  }
  seat_.listener()->cancel();
  turns_away_ = false;
  SeatTerms terms;
  const auto abdicate = [this, weak = std::weak_ptr<int>(alive_)](const std::string& reason) {
    asio::post(executor_, [this, weak, reason] {
      if (weak.lock() != nullptr && is_candidate()) user_.abdicated(reason);
    });
  };
  terms.candidate = {order.ended_author, order.why, order.origin, abdicate};
  auto opened = seat_.open(std::move(terms));
  if (opened) attend(*seat_.coordinator(), port_);
  return opened;
}

/// Nodes that come with a list of hosts ask for the run at this one's entry, too, and are sent on
/// from there. It takes none in. Another process may have the port: then there is no such place.
bool Standby::serve_host_entry() {
  const auto entry = config_.rendezvous->own_entry();
  if (!entry || !entry_.reserve(config_.store.listen_addr, entry->port)) return false;
  SeatTerms terms;
  terms.may_act = [] { return false; };
  return entry_.open(std::move(terms)).has_value();
}

void Standby::withdraw() {
  resign();
  (void)listen();  // without a port others find none here
}

void Standby::resign() {
  notices_.clear();
  rivals_.clear();
  seat_.close();
  entry_.close();
}

std::optional<protocol::Lead> Standby::says(const Leader& leader) const {
  const auto led = leader.coordinator->led();
  if (!led) return std::nullopt;
  return protocol::Lead{config_.run_id, led->round, leader.port, led->origin,
                        command_key(config_.workers)};
}

// Where another coordinator of the run tells that it leads, too, that one is told next.
void Standby::tell(CoordinatorAddress where, Leader leader) {
  const auto hears = [this, leader](const protocol::Moved& moved) {
    tell_rival({moved.address, moved.port}, leader);
  };
  notices_.push_back(std::make_unique<EndpointNotice>(
      executor_, config_, std::move(where), [this, leader] { return says(leader); }, hears));
}

void Standby::tell_rival(CoordinatorAddress where, Leader leader) {
  const bool is_told = std::any_of(rivals_.begin(), rivals_.end(), [&where](const Rival& one) {
    return one.where.host == where.host && one.where.port == where.port;
  });
  if (is_told || rivals_.size() >= kRivalsMax) return;
  const auto ends = [this, weak = std::weak_ptr<int>(alive_)] {
    asio::post(executor_, [this, weak] {
      if (weak.lock() == nullptr) return;
      std::erase_if(rivals_, [](const Rival& one) { return one.notice->has_ended(); });
    });
  };
  auto notice = std::make_unique<EndpointNotice>(
      executor_, config_, where, [this, leader] { return says(leader); }, nullptr, ends);
  rivals_.push_back({std::move(where), std::move(notice)});
}

void Standby::attend(LocalCoordinator& coordinator, std::uint16_t port) {
  const Leader leader{&coordinator, port};
  coordinator.on_rival([this, leader](const std::string& host, std::uint16_t at) {
    tell_rival({host, at}, leader);
  });
  coordinator.on_resigned([this, weak = std::weak_ptr<int>(alive_)] {
    asio::post(executor_, [this, weak] {
      if (weak.lock() != nullptr) user_.resigned();
    });
  });
}

std::unique_ptr<LocalCoordinator> Standby::lead(const std::vector<client::Place>& former) {
  std::vector<CoordinatorAddress> all{config_.rendezvous->coordinator};
  for (const client::Place& place : former) all.push_back({place.address, place.port});
  if (serve_host_entry()) all.push_back(*config_.rendezvous->own_entry());
  notices_.clear();
  for (CoordinatorAddress& where : all) tell(std::move(where), {seat_.coordinator(), port_});
  return seat_.take();
}

}  // namespace ddprun

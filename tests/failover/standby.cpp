// The part of a Process that is agent/coordinate/standby and agent/coordinate/endpoint_links in a
// real process: keep the two alike.
#include <utility>

#include "rendezvous/client/membership.hpp"
#include "tests/failover/process.hpp"

namespace ddprun::failover {

using namespace protocol;

namespace {

// agent/coordinate/endpoint_links.hpp.
constexpr Duration kNoticeInterval = milliseconds(500);
constexpr int kUnansweredMax = 4;

}  // namespace

void World::Process::listen() {
  int port = standby_port_;
  if (port == 0) port = kStandbyPort + (process_ * 10 + servers_made_) % 30'000;
  listens_ = net_.listen(process_, host_, port);
  standby_port_ = listens_ ? port : 0;
  turns_away_ = false;
}

void World::Process::stand_by(const client::Event& event) {
  const bool came = std::holds_alternative<client::Incoming>(event);
  if (!came || !membership().has_coordinator()) return;
  turn_away();
  if (candidate_) lead();
}

void World::Process::turn_away() {
  if (!listens_ || std::exchange(turns_away_, true)) return;
  world_.wake(process_);
}

void World::Process::turn_away_if_readable() {
  while (turns_away_ && listens_ && net_.is_readable(host_, standby_port_)) {
    turns_away_ = false;
    if (!membership().has_coordinator()) return;
    net_.close(net_.accept(host_, standby_port_));
    turns_away_ = true;
  }
}

void World::Process::coordinate(const client::Coordinate& order) {
  if (!listens_) {
    return world_.feed(host_, client::Abdicated{"this node has no port to coordinate the run"});
  }
  turns_away_ = false;
  listens_ = false;
  Server::Options options = server_options(standby_port_);
  options.succession.candidate =
      round::SuccessionOptions::Candidate{order.ended_author, order.why, order.origin};
  options.on_abdicate = [this](const std::string& reason) {
    if (candidate_) feed(client::Abdicated{reason});
  };
  world_.say("n" + std::to_string(host_) + " is a candidate" +
             (order.ended_author.empty() ? "" : ", " + order.ended_author + " has ended"));
  candidate_ = std::make_unique<Server>(net_, *this, std::move(options));
  attend(*candidate_);
  world_.wake(process_);
}

void World::Process::withdraw() {
  drop_notices();
  if (std::exchange(leads_, false)) local_ = std::move(endpoint_);
  if (listens_) net_.unlisten(host_, standby_port_);
  listens_ = false;
  candidate_.reset();
  listen();
}

void World::Process::drop_notices() {
  for (Notice& notice : notices_) {
    if (notice.socket != kNoSocket) net_.close(notice.socket);
  }
  notices_.clear();
  heard_.clear();
}

void World::Process::lead() {
  if (local_) endpoint_ = std::move(local_);
  local_ = std::move(candidate_);
  leads_ = true;
  drop_notices();
  notices_.push_back({0, kEndpointPort, local_.get()});
  for (const client::Place& place : membership().former_coordinators()) {
    notices_.push_back({host_at(place.address), place.port, local_.get()});
  }
  for (Notice& notice : notices_) attempt(notice);
}

void World::Process::attend(Server& leader) {
  leader.on_rival([this, &leader](const protocol::Moved& place) {
    heard_.push_back({place, &leader});
  });
  leader.on_resigned([this] {
    drop_notices();
    leads_ = false;
    local_.reset();
    endpoint_.reset();
    candidate_.reset();
  });
}

void World::Process::attempt(Notice& notice) {
  if (notice.socket != kNoSocket) net_.close(notice.socket);
  notice.socket = net_.connect(process_, host_, notice.host, notice.port);
  notice.is_up = false;
  notice.unanswered = 0;
  notice.give_up = local_now() + client::kAttemptMax;
  notice.again.reset();
  wake_at(notice.give_up);
}

void World::Process::tell(Notice& notice) {
  const Server& leader = *notice.leader;
  const round::Run* run = leader.is_finished() ? nullptr : leader.run();
  if (const auto round = run != nullptr ? run->authority().decides_after() : std::nullopt) {
    const auto port = static_cast<std::uint16_t>(leader.port());
    net_.send(notice.socket, Lead{RunId("run"), *round, port, run->rounds().origin()});
    ++notice.unanswered;
  }
  again(notice);
}

void World::Process::again(Notice& notice) {
  notice.again = local_now() + kNoticeInterval;
  wake_at(*notice.again);
}

void World::Process::run_notices() {
  for (Notice& notice : notices_) run(notice);
  std::erase_if(notices_,
                [](const Notice& one) { return one.is_of_rival && one.socket == kNoSocket; });
  for (const Rival& rival : std::exchange(heard_, {})) {
    const int host = host_at(rival.place.address);
    const bool is_told = std::any_of(notices_.begin(), notices_.end(), [&](const Notice& one) {
      return one.is_of_rival && one.host == host && one.port == rival.place.port;
    });
    if (is_told) continue;
    notices_.push_back({host, rival.place.port, rival.leader, true});
    attempt(notices_.back());
  }
}

void World::Process::run(Notice& notice) {
  if (notice.again && local_now() >= *notice.again) {
    notice.again.reset();
    notice.is_up&& notice.unanswered < kUnansweredMax ? tell(notice) : attempt(notice);
  }
  if (notice.socket == kNoSocket) return;
  Socket& socket = net_.at(notice.socket);
  if (std::exchange(socket.is_up, false)) {
    notice.is_up = true;
    tell(notice);
  }
  if (!socket.inbox.empty()) notice.unanswered = 0;
  for (const protocol::Message& message : socket.inbox) {
    const auto* moved = std::get_if<protocol::Moved>(&message);
    if (moved != nullptr && !notice.is_of_rival) heard_.push_back({*moved, notice.leader});
  }
  socket.inbox.clear();
  const bool is_late = !notice.is_up && local_now() >= notice.give_up;
  if (socket.ended.empty() && !is_late) return;
  net_.close(std::exchange(notice.socket, kNoSocket));
  notice.is_up = false;
  again(notice);
}

}  // namespace ddprun::failover

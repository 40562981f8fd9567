#include "tests/failover/process.hpp"

#include <utility>

#include "rendezvous/client/membership.hpp"
#include "tests/sim/words.hpp"

namespace ddprun::failover {

using namespace protocol;

World::Process::Process(World& world, int host, ProcessId process)
    : world_(world), net_(world.net_), host_(host), process_(process) {
  static_cast<void>(host_coordinator());
  listen();
}

TimePoint World::Process::local_now() const {
  return world_.nodes_[index(host_)].clock.local(world_.now());
}

void World::Process::run() {
  const bool timer_first = world_.random().chance(25);
  if (timer_first) tick_if_due();
  world_.run_held(host_);
  read_link();
  serve();
  turn_away_if_readable();
  run_notices();
  tick_if_due();
  settle();
}

void World::Process::feed(const client::Event& event) {
  taking_ = &event;
  world_.feed(host_, event);
  taking_ = nullptr;
  stand_by(event);
}

void World::Process::read_link() {
  while (socket_ != kNoSocket) {
    Socket& socket = net_.at(socket_);
    if (std::exchange(socket.is_up, false)) {
      give_up_.reset();
      feed(client::LinkUp{link_});
    } else if (!socket.inbox.empty()) {
      Message message = std::move(socket.inbox.front());
      socket.inbox.pop_front();
      world_.note_heard(host_, message);
      feed(client::Incoming{link_, std::move(message)});
    } else if (!socket.ended.empty()) {
      const bool refused = socket.is_refused;
      const std::string evidence = socket.ended;
      net_.close(std::exchange(socket_, kNoSocket));
      give_up_.reset();
      feed(client::LinkDown{std::exchange(link_, 0), evidence, refused});
    } else {
      return;
    }
  }
}

void World::Process::tick_if_due() {
  if (socket_ != kNoSocket && give_up_ && local_now() >= *give_up_) {
    net_.close(std::exchange(socket_, kNoSocket));
    give_up_.reset();
    feed(client::LinkDown{std::exchange(link_, 0), "timed out"});
  }
  if (!armed_ || local_now() < *armed_) return;
  armed_.reset();
  world_.nodes_[index(host_)].timer_pending = false;
  feed(client::Tick{});
}

void World::Process::serve() {
  for (const SocketId socket : net_.take_news(process_)) {
    for (Server* server : {endpoint_.get(), local_.get(), candidate_.get()}) {
      if (server != nullptr) server->hear_of(socket);
    }
  }
  // One of them may be replaced or closed by what is posted, not before.
  for (Server* server : {endpoint_.get(), local_.get(), candidate_.get()}) {
    if (server != nullptr) server->ready();
  }
}

// Agent::settle().
void World::Process::settle() {
  if (!agent().end()) return;
  if (!std::exchange(asked_to_settle_, true) && local_ && agent().ends_run()) {
    local_->shut_down(agent().run_exit_code(), "its node leaves");
  }
  const TimePoint written = world_.nodes_[index(host_)].output_stalled_until;
  if (written <= world_.now()) return;
  world_.timeline().at(written, [&world = world_, process = process_] { world.wake(process); });
}

// When what its workers wrote has been passed on.
bool World::Process::is_over() const {
  if (exits_) return true;
  const bool written = world_.now() >= world_.nodes_[index(host_)].output_stalled_until;
  return asked_to_settle_ && written && (!local_ || local_->is_settled());
}

std::pair<int, int> World::Process::peer() const {
  if (socket_ == kNoSocket) return {-1, 0};
  return {net_.at(socket_).peer_host, link_port_};
}

std::vector<const Server*> World::Process::servers() const {
  std::vector<const Server*> all;
  for (const Server* server : {endpoint_.get(), local_.get(), candidate_.get()}) {
    if (server != nullptr) all.push_back(server);
  }
  return all;
}

Server::Options World::Process::server_options(int port) {
  Server::Options options;
  options.run = RunId("run");
  options.author = "c" + std::to_string(host_) + "#" + std::to_string(process_) + "." +
                   std::to_string(++servers_made_);
  options.host = host_;
  options.port = port;
  options.succession.exists = true;
  return options;
}

bool World::Process::host_coordinator() {
  if (host_ != 0 || local_) return false;
  if (!net_.listen(process_, 0, kEndpointPort)) return false;
  Server::Options options = server_options(kEndpointPort);
  options.succession.at_endpoint = true;
  local_ = std::make_unique<Server>(net_, *this, std::move(options));
  attend(*local_);
  return true;
}

void World::Process::connect(const client::Connect& action) {
  const std::optional<client::Place>& to = action.to;
  const bool may_host = !membership().joined() && !to;
  if (may_host && host_coordinator()) {
    world_.nodes_[index(host_)].agent->core().coordinator_is_here();
  }
  if (socket_ != kNoSocket) net_.close(socket_);
  link_ = action.link;
  const int host = to ? host_at(to->address) : 0;
  link_port_ = to ? to->port : kEndpointPort;
  socket_ = net_.connect(process_, host_, host, link_port_);
  give_up_ = local_now() + client::kAttemptMax;
  wake_at(*give_up_);
}

void World::Process::close_link(client::LinkId link) {
  if (link != link_ || socket_ == kNoSocket) return;
  net_.close(std::exchange(socket_, kNoSocket));
  link_ = 0;
  give_up_.reset();
}

void World::Process::send(const client::SendMessage& action) {
  const Message& message = action.message;
  if (action.link != link_ || socket_ == kNoSocket) return;
  if (!sim::is_heartbeat(message)) {
    world_.say([&] {
      return "n" + std::to_string(host_) + " -> n" + std::to_string(net_.at(socket_).peer_host) +
             ":" + std::to_string(link_port_) + " " + sim::words(message);
    });
  }
  net_.send(socket_, message);
}

void World::Process::arm(TimePoint deadline) {
  armed_ = deadline;
  wake_at(deadline);
}

void World::Process::wake_at(TimePoint local) {
  world_.timeline().at(world_.nodes_[index(host_)].clock.global(local),
                       [&world = world_, process = process_] { world.wake(process); });
}

void World::Process::on_step() {
  const auto* incoming = taking_ == nullptr ? nullptr : std::get_if<client::Incoming>(taking_);
  if (incoming == nullptr) return;
  const auto* start = std::get_if<StartRound>(&incoming->message);
  const bool took =
      start != nullptr && membership().round() == start->stamp.number && !(stamp_ == start->stamp);
  if (took) {
    const RoundStamp before = std::exchange(stamp_, start->stamp);
    is_spare_ = false;
    world_.on_round_taken(host_, before, *start);
  }
  const auto* waiting = std::get_if<Waiting>(&incoming->message);
  if (waiting != nullptr) is_spare_ = waiting->here > waiting->nodes_max;
}

}  // namespace ddprun::failover

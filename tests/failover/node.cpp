#include "tests/failover/node.hpp"

#include <utility>

#include "rendezvous/client/limits.hpp"
#include "tests/sim/words.hpp"

namespace ddprun::failover {

using namespace protocol;

Node::Node(NodeWorld& world, Net& net, NodeOptions options)
    : world_(world), net_(net), options_(std::move(options)) {}

Node::~Node() = default;

AgentId Node::id() const {
  return AgentId("n" + std::to_string(options_.host) + "/" + std::to_string(options_.process));
}

void Node::begin() {
  client::MembershipOptions own;
  own.coordinator = "n0:" + std::to_string(kEndpointPort);
  own.coordinator_timeout = options_.coordinator_timeout;
  own.hello.run_id = RunId("run");
  own.hello.agent = id();
  own.hello.host = "n" + std::to_string(options_.host);
  own.hello.terms = options_.terms;
  own.hello.stop_timeout = milliseconds(500);
  own.hello.runs_coordinator = host_coordinator();
  ddprun::Node node(std::move(own), ddprun::Node::Nodes::kSeveral, now());
  listen();
  node.stand_by(static_cast<std::uint16_t>(standby_port_));
  agent_ = std::make_unique<Pump<ddprun::Node, node::Event, Node>>(*this, std::move(node));
  agent_->feed(node::Begin{});
}

void Node::run() {
  const bool timer_first = world_.random().chance(25);
  if (timer_first) tick_if_due();
  while (!posted_.empty()) {
    const auto what = std::move(posted_.front());
    posted_.pop_front();
    what();
  }
  read_link();
  serve();
  turn_away_if_readable();
  run_notices();
  tick_if_due();
  settle();
  if (!posted_.empty()) world_.wake(options_.process);
}

void Node::feed(const client::Event& event) {
  taking_ = &event;
  agent_->feed(event);
  taking_ = nullptr;
  stand_by(event);
}

void Node::read_link() {
  while (socket_ != kNoSocket) {
    Socket& socket = net_.at(socket_);
    if (std::exchange(socket.is_up, false)) {
      give_up_.reset();
      feed(client::LinkUp{link_});
    } else if (!socket.inbox.empty()) {
      Message message = std::move(socket.inbox.front());
      socket.inbox.pop_front();
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

void Node::tick_if_due() {
  if (socket_ != kNoSocket && give_up_ && now() >= *give_up_) {
    net_.close(std::exchange(socket_, kNoSocket));
    give_up_.reset();
    feed(client::LinkDown{std::exchange(link_, 0), "timed out"});
  }
  if (!armed_ || now() < *armed_) return;
  armed_.reset();
  feed(client::Tick{});
}

void Node::serve() {
  for (const SocketId socket : net_.take_news(options_.process)) {
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
void Node::settle() {
  if (!agent().end() || std::exchange(asked_to_settle_, true)) return;
  if (local_ && agent().ends_run()) {
    local_->shut_down(agent().run_exit_code(), "its node leaves");
  }
}

bool Node::is_over() const {
  return asked_to_settle_ && (!local_ || local_->is_settled());
}

std::pair<int, int> Node::peer() const {
  if (socket_ == kNoSocket) return {-1, 0};
  return {net_.at(socket_).peer_host, link_port_};
}

std::vector<const Server*> Node::servers() const {
  std::vector<const Server*> all;
  for (const Server* server : {endpoint_.get(), local_.get(), candidate_.get()}) {
    if (server != nullptr) all.push_back(server);
  }
  return all;
}

Server::Options Node::server_options(int port) {
  Server::Options options;
  options.run = RunId("run");
  options.author = "c" + std::to_string(options_.host) + "/" + std::to_string(options_.process) +
                   "." + std::to_string(++servers_made_);
  options.host = options_.host;
  options.port = port;
  options.succession.exists = true;
  return options;
}

bool Node::host_coordinator() {
  if (options_.host != 0 || local_) return false;
  if (!net_.listen(options_.process, 0, kEndpointPort)) return false;
  Server::Options options = server_options(kEndpointPort);
  options.succession.at_endpoint = true;
  local_ = std::make_unique<Server>(net_, *this, std::move(options));
  attend(*local_);
  return true;
}

void Node::act(const client::Connect& action) {
  const std::optional<client::Place>& to = action.to;
  const bool may_host = !membership().joined() && !to;
  if (may_host && host_coordinator()) agent_->core().coordinator_is_here();
  if (socket_ != kNoSocket) net_.close(socket_);
  link_ = action.link;
  const int host = to ? host_at(to->address) : 0;
  link_port_ = to ? to->port : kEndpointPort;
  socket_ = net_.connect(options_.process, options_.host, host, link_port_);
  give_up_ = now() + client::kAttemptMax;
  wake_at(*give_up_);
}

void Node::act(const client::CloseLink& action) {
  if (action.link != link_ || socket_ == kNoSocket) return;
  net_.close(std::exchange(socket_, kNoSocket));
  link_ = 0;
  give_up_.reset();
}

void Node::act(const client::SendMessage& action) {
  const Message& message = action.message;
  if (action.link != link_ || socket_ == kNoSocket) return;
  if (world_.is_traced() && !sim::is_heartbeat(message)) {
    world_.say("n" + std::to_string(options_.host) + " -> n" +
               std::to_string(net_.at(socket_).peer_host) + ":" + std::to_string(link_port_) + " " +
               sim::words(message));
  }
  net_.send(socket_, message);
}

void Node::act(const client::OpenStore&) {
  agent_->feed(client::StoreOpened{static_cast<std::uint16_t>(5000 + ++stores_ % 1000)});
}

void Node::act(const client::ReleaseStore& action) {
  later(milliseconds(1), [this, round = action.round] { feed(client::StoreIdle{round}); });
}

void Node::act(const client::ArmTimer& action) {
  armed_ = action.deadline;
  wake_at(action.deadline);
}

void Node::wake_at(TimePoint local) {
  const TimePoint when = options_.clock.global(local);
  world_.after(when - world_.now(),
               [&world = world_, process = options_.process] { world.wake(process); });
}

void Node::post(std::function<void()> what) {
  posted_.push_back(std::move(what));
  world_.wake(options_.process);
}

void Node::act(const node::Stepped&) {
  const auto* incoming = taking_ == nullptr ? nullptr : std::get_if<client::Incoming>(taking_);
  if (incoming != nullptr) {
    const auto* start = std::get_if<StartRound>(&incoming->message);
    const bool took = start != nullptr && membership().round() == start->stamp.number &&
                      !(stamp_ == start->stamp);
    if (took) {
      const RoundStamp before = std::exchange(stamp_, start->stamp);
      is_spare_ = false;
      world_.on_round_taken(options_.process, before, *start);
    }
    const auto* waiting = std::get_if<Waiting>(&incoming->message);
    if (waiting != nullptr) is_spare_ = waiting->here > waiting->nodes_max;
  }
  world_.on_step(options_.process);
}

void Node::act(const node::LogNote& action) {
  world_.say("n" + std::to_string(options_.host) + " notes: " + action.text);
}

void Node::ask_to_stop() {
  post([this] { agent_->feed(node::StopAsked{{15, "", false}}); });
}

}  // namespace ddprun::failover

#include "bench/goodput/node.hpp"

namespace ddprun::bench {
namespace {

client::MembershipOptions membership_options(const protocol::Terms& terms, int id, int process) {
  client::MembershipOptions options;
  options.hello.run_id = RunId("goodput");
  options.hello.host = "n" + std::to_string(id);
  options.hello.agent = AgentId(options.hello.host + "#" + std::to_string(process));
  options.hello.local_world_size = 8;
  options.hello.terms = terms;
  options.coordinator = "coordinator:29400";
  return options;
}

}  // namespace

Cluster::Node::Node(Cluster& cluster, int id, int process)
    : cluster_(cluster),
      id_(id),
      process_(process),
      agent_(*this, ddprun::Node(membership_options(cluster.terms(), id, process),
                                 ddprun::Node::Nodes::kSeveral, now())) {}

template <class What>
void Cluster::Node::at(TimePoint when, What what) {
  cluster_.timeline_.at(when, [&cluster = cluster_, id = id_, process = process_, what] {
    Node* node = cluster.nodes_[static_cast<std::size_t>(id)].get();
    if (node != nullptr && node->process_ == process) what(*node);
  });
}

void Cluster::Node::begin() {
  agent_.feed(node::Begin{});
}

void Cluster::Node::act(const client::Connect& action) {
  own_link_ = action.link;
  at(now() + cluster_.options_.times.link, [link = action.link](Node& node) {
    node.link_ = node.cluster_.open_link(node.id_);
    node.agent_.feed(client::LinkUp{link});
  });
}

void Cluster::Node::act(const client::SendMessage& action) {
  up_.push_back(action.message);
  at(now() + cluster_.options_.times.link, [](Node& node) {
    protocol::Message next = std::move(node.up_.front());
    node.up_.pop_front();
    node.cluster_.to_run(round::Received{node.link_, {"10.0.0.1", "10.0.0.2"}, std::move(next)});
  });
}

void Cluster::Node::deliver_at(TimePoint when, protocol::Message message) {
  last_down_ = std::max(last_down_, when);
  down_.push_back(std::move(message));
  at(last_down_, [](Node& node) {
    protocol::Message next = std::move(node.down_.front());
    node.down_.pop_front();
    const auto* start = std::get_if<protocol::StartRound>(&next);
    const int number = start != nullptr ? start->stamp.number.value() : 0;
    const bool first = node.agent_->membership().round() == Round(0);
    node.agent_.feed(client::Incoming{node.own_link_, std::move(next)});
    if (number != 0) node.cluster_.on_round_taken(number, first);
  });
}

void Cluster::Node::act(const client::OpenStore&) {
  agent_.feed(client::StoreOpened{static_cast<std::uint16_t>(30000 + ports_opened_++ % 10000)});
}

void Cluster::Node::act(const client::ReleaseStore& action) {
  at(now(), [round = action.round](Node& node) { node.agent_.feed(client::StoreIdle{round}); });
}

// Processes are there at once; what their program imports takes its time.
void Cluster::Node::act(const client::StartGroup& action) {
  const ClusterOptions& options = cluster_.options_;
  group_ = action.round.stamp.number.value();
  ending_ = false;
  cluster_.on_group_started(group_);
  at(now(), [number = group_](Node& node) {
    const bool runs = node.group_ == number && !node.ending_;
    if (runs) node.agent_.feed(client::GroupRunning{Round(number)});
  });
  const bool survives = has_state_ && options.restart == Restart::kFailed;
  has_state_ = true;
  at(now() + (survives ? Duration(0) : options.times.start), [number = group_](Node& node) {
    if (node.group_ == number && !node.ending_) node.cluster_.on_ready(number);
  });
}

void Cluster::Node::act(const client::StopGroup&) {
  end_group();
}

void Cluster::Node::end_group() {
  if (group_ == 0 || std::exchange(ending_, true)) return;
  at(now() + cluster_.options_.times.stop, [](Node& node) {
    node.agent_.feed(node::GroupOver{Round(std::exchange(node.group_, 0)), {}});
  });
}

void Cluster::Node::fail_process() {
  if (group_ == 0 || ending_) return;
  has_state_ = false;
  WorkerExit exit;
  exit.worker.host = "n" + std::to_string(id_);
  agent_.feed(client::GroupFailed{Round(group_), std::move(exit)});
  end_group();
}

void Cluster::Node::act(const client::ArmTimer& action) {
  arm(action.deadline);
}

// A timer that is moved again and again is one event in the queue.
void Cluster::Node::arm(TimePoint deadline) {
  deadline_ = deadline;
  if (deadline >= wakes_at_) return;
  wakes_at_ = deadline;
  at(deadline, [deadline](Node& node) {
    if (node.wakes_at_ == deadline) node.wake();
  });
}

void Cluster::Node::wake() {
  wakes_at_ = TimePoint::max();
  if (now() < deadline_) return arm(deadline_);
  agent_.feed(client::Tick{});
}

}  // namespace ddprun::bench

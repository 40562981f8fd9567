// What the Node of a simulated agent orders is done in the world.
#include "tests/sim/round_shell.hpp"

namespace ddprun::sim {

using namespace protocol;

class World::NodeShell {
 public:
  NodeShell(World& world, int id) : world_(world), id_(id) {}

  [[nodiscard]] TimePoint now() const { return node().clock.local(world_.now()); }

  /// After its end it takes what is still under way, and does nothing about it.
  template <class Action>
  void act(const Action& action) {
    constexpr bool is_no_deed = std::is_same_v<Action, node::PassStopSignal> ||
                                std::is_same_v<Action, node::Stepped> ||
                                std::is_same_v<Action, node::LogDeath>;
    require(is_no_deed || !node().ended, "an agent does something after its end");
    carry_out(action);
  }

 private:
  void carry_out(const client::Connect& action) { world_.connect(id_, action); }
  void carry_out(const client::Coordinate& action) { world_.coordinate(id_, action); }
  void carry_out(const client::Withdraw&) { world_.withdraw(id_); }
  void carry_out(const client::CloseLink& action) { world_.close_link(id_, action.link); }
  void carry_out(const client::SendMessage& action) { world_.send(id_, action); }
  void carry_out(const client::OpenStore&) {
    world_.feed(id_, client::StoreOpened{world_.open_store(id_)});
  }
  void carry_out(const client::ServeStore&) { world_.serve_store(id_); }
  void carry_out(const client::ReleaseStore&) { world_.release_store(id_); }
  void carry_out(const client::CloseStore& action) { world_.close_store(id_, action.round); }
  void carry_out(const client::StartGroup& action) { world_.start_group(id_, action.round); }
  void carry_out(const client::StopGroup& action) { world_.stop_group(id_, action); }
  void carry_out(const client::ArmTimer& action) { world_.arm_agent(id_, action.deadline); }
  void carry_out(const client::DeliverSignal&) { world_.deliver_signal(id_); }
  void carry_out(const client::CheckHang& action) { world_.check_hang(id_, action); }
  void carry_out(const client::End&) {}
  void carry_out(const node::PassStopSignal& action) {
    world_.pass_stop_signal(id_, action.signal);
  }
  void carry_out(const node::Stepped& action) { world_.on_step(id_, action); }
  void carry_out(const node::LogNote& action) { require(!action.text.empty(), "an empty note"); }
  void carry_out(const node::LogDeath&) {}
  void carry_out(const node::LogRestart&) {}
  void carry_out(const node::LogLeaving&) {}
  [[nodiscard]] World::Node& node() const { return world_.nodes_[index(id_)]; }

  World& world_;
  int id_;
};

void World::make_agent(int id) {
  Node& node = nodes_[index(id)];
  node.shell = std::make_shared<NodeShell>(*this, id);
  node.agent = std::make_unique<Agent>(
      *node.shell, ddprun::Node(membership_options(id), ddprun::Node::Nodes::kSeveral,
                                node.clock.local(timeline_.now())));
}

void World::feed(int id, const node::Event& event) {
  Node& node = nodes_[index(id)];
  node.agent->feed(event);
  if (!node.agent->idle() || node.ended) return;
  node.ended = (*node.agent)->end().has_value();
  if (node.ended) return on_end(id, *(*node.agent)->end());
  const bool ending = node.leaving || (node.group && node.group->ending());
  require(node.timer_pending || ending, "an agent waits without a deadline");
}

}  // namespace ddprun::sim

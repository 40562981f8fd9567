// What the driver of a simulated agent asks for is done in the world.
#include "tests/sim/round_shell.hpp"
#include "tests/sim/words.hpp"

namespace ddprun::sim {

using namespace protocol;

class World::Ports final : public NodePorts {
 public:
  Ports(World& world, int id) : world_(world), id_(id) {}

  [[nodiscard]] TimePoint now() const override { return node().clock.local(world_.now()); }
  [[nodiscard]] bool host_coordinator() override { return false; }
  // In these lives no other node coordinates.
  Result<void> coordinate(const client::Coordinate&) override {
    return Error(ErrorKind::kSystem, "nowhere");
  }
  void withdraw_coordinator() override {}
  void connect(client::LinkId link, const std::optional<client::Place>&) override {
    check();
    world_.connect(id_, link);
  }
  void close_link(client::LinkId link) override {
    check();
    if (link != node().link) return;  // the peer closed it, which is still to be told
    if (node().connection >= 0) return world_.close_agent_end(node().connection);
    node().link = 0;
  }
  void send(client::LinkId link, const Message& message) override {
    check();
    if (!is_heartbeat(message)) {
      world_.say([&] { return node().options.host + " -> " + words(message); });
    }
    const bool open = link == node().link && node().connection >= 0;
    if (open) world_.push(node().connection, Way::kUp, world_.through_codec(message));
  }
  [[nodiscard]] Result<std::uint16_t> open_store() override {
    check();
    return world_.open_store(id_);
  }
  [[nodiscard]] Result<void> serve_store(Round, const std::vector<std::string>&) override {
    check();
    world_.serve_store(id_);
    return {};
  }
  void release_store(Round) override {
    check();
    world_.release_store(id_);
  }
  void close_store(Round round) override {
    check();
    world_.close_store(id_, round);
  }
  [[nodiscard]] Result<void> start_group(const StartRound& round) override {
    check();
    world_.start_group(id_, round);
    return {};
  }
  void stop_group(const client::StopGroup& order) override {
    check();
    world_.stop_group(id_, order);
  }
  void deliver_signal(const client::DeliverSignal&) override {
    check();
    world_.deliver_signal(id_);
  }
  void check_hang(const client::CheckHang& order) override {
    check();
    world_.check_hang(id_, order);
  }
  void pass_stop_signal(int signal) override { world_.pass_stop_signal(id_, signal); }
  [[nodiscard]] bool failure_is_pending() const override {
    return node().group->shell->round().failure_is_unreported();
  }
  void arm_timer(TimePoint deadline) override {
    check();
    world_.arm_agent(id_, deadline);
  }
  void on_step() override { world_.on_step(id_); }
  void log_note(const std::string& text) override {
    check();
    require(!text.empty(), "an empty note");
  }
  void log_death(const std::string&) override {}
  void log_restart(const std::string&) override {}
  void log_leaving(const ReceivedSignal&) override {}
  [[nodiscard]] int report_error(const Error&) override { return 1; }
  void end() override {}

 private:
  void check() const { require(!node().ended, "an agent does something after its end"); }
  [[nodiscard]] Node& node() const { return world_.nodes_[index(id_)]; }

  World& world_;
  int id_;
};

std::unique_ptr<NodePorts> World::make_ports(int id) {
  return std::make_unique<Ports>(*this, id);
}

}  // namespace ddprun::sim

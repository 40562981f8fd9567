// Many agents in one process: each has the real Membership and a real connection, but no worker
// processes. Generates the load for the coordinator's benchmark. One thread. Failures (a timeout, a
// refusal) throw std::runtime_error.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "rendezvous/client/connection.hpp"
#include "rendezvous/client/membership.hpp"

namespace ddprun::bench {

enum class KeepTraffic { kNo, kYes };

struct CrowdOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::size_t agents = 0;
  std::string run_id;
  /// Maximum number of concurrent connection attempts; a listener's backlog is limited.
  std::size_t connecting_max = 128;
  KeepTraffic keep_traffic = KeepTraffic::kNo;
  net::SharedTlsContext tls = nullptr;  // null: links in clear text
};

/// All messages sent and received, for counting. Recording them takes time, so such a run is not
/// timed.
struct Traffic {
  std::vector<protocol::Message> up;
  std::vector<protocol::Message> down;
  std::size_t links = 0;
};

class Crowd;

class CrowdAgent {
 public:
  CrowdAgent(Crowd& crowd, std::size_t number);

  void begin();
  void feed(const client::Event& event);
  /// The first worker of its round fails, or all workers succeed.
  void fail();
  void succeed();
  void beat();
  /// Disconnects without a message, as if killed.
  void vanish();

  [[nodiscard]] bool alive() const { return connection_ != nullptr; }
  [[nodiscard]] int round() const { return started_; }
  [[nodiscard]] const std::optional<client::End>& end() const { return end_; }

 private:
  void act(const client::Connect& connect);
  void act(const client::Coordinate&) {
  }  // the coordinator of a crowd is not followed by its agents
  void act(const client::Withdraw&) {}
  void act(const client::CloseLink& close);
  void act(const client::SendMessage& send);
  void act(const client::OpenStore& open);
  void act(const client::ServeStore&) {}
  void act(const client::ReleaseStore& release);
  void act(const client::CloseStore&) {}
  void act(const client::StartGroup& start);
  void act(const client::StopGroup& stop);
  void act(const client::ArmTimer& arm);
  void act(const client::Note&) {}
  void act(const client::DeliverSignal&) {}
  void act(const client::CheckHang&) {}
  void act(const client::End& end);
  void carry_out(const client::Actions& actions);
  void carry_out_waiting();
  void on_event(const client::Event& event);

  Crowd& crowd_;
  const std::size_t number_;
  client::Membership membership_;
  std::shared_ptr<client::CoordinatorLink> connection_;  // null after vanish()
  boost::asio::steady_timer timer_;
  std::deque<client::Event> waiting_;  // events that arrived while another was handled
  bool busy_ = false;
  client::LinkId link_ = 0;
  int started_ = 0;  // the last round whose workers were started
  std::optional<client::End> end_;
};

class Crowd {
 public:
  explicit Crowd(CrowdOptions options);

  /// Waits until every agent has started the workers of a round above `round`, and returns that
  /// round.
  int join();
  int lose_one();
  int fail_one();
  /// Waits until every agent has its verdict, and checks that it is success.
  void succeed();
  /// Waits until the coordinator has read all messages: heartbeats are answered in order on each
  /// link.
  void settle();
  [[nodiscard]] std::size_t alive() const { return alive_; }
  [[nodiscard]] Traffic take_traffic() { return std::exchange(traffic_, {}); }

 private:
  friend class CrowdAgent;

  int await_round_above(int round);
  [[nodiscard]] bool keeps_traffic() const { return options_.keep_traffic == KeepTraffic::kYes; }
  template <class Condition>
  void run_until(const std::string& what, Condition condition);
  void connect_next();
  [[nodiscard]] CrowdAgent& one_in_the_middle();

  CrowdOptions options_;
  boost::asio::io_context io_{1};
  std::deque<CrowdAgent> agents_;
  std::size_t alive_ = 0;
  std::size_t begun_ = 0;
  std::size_t connecting_ = 0;
  std::size_t behind_ = 0;  // agents whose round is not above floor_
  int floor_ = 0;
  std::size_t unanswered_ = 0;  // heartbeats
  std::size_t ended_ = 0;
  Traffic traffic_;
};

}  // namespace ddprun::bench

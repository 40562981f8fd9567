// A crowd of agents in one process: each has the real Membership and a real connection, and workers
// that exist in name only. The load side of the coordinator's benchmark. One thread. Failures
// (a stall, a refusal) throw std::runtime_error.
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
  /// Connection attempts at once; a listener's backlog is not endless.
  std::size_t connecting_max = 128;
  KeepTraffic keep_traffic = KeepTraffic::kNo;
};

/// Everything sent and received, to be counted. Keeping it costs time: such a run is not timed.
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
  /// Its round's first worker fails, or all succeed.
  void fail();
  void succeed();
  void beat();
  /// As if it were killed.
  void vanish();

  [[nodiscard]] bool alive() const { return connections_ != nullptr; }
  [[nodiscard]] int round() const { return started_; }
  [[nodiscard]] const std::optional<client::End>& end() const { return end_; }

 private:
  void act(const client::Connect& connect);
  void act(const client::CloseLink& close);
  void act(const client::SendMessage& send);
  void act(const client::OpenStore& open);
  void act(const client::ServeStore&) {}
  void act(const client::CloseStore&) {}
  void act(const client::StartGroup& start);
  void act(const client::StopGroup& stop);
  void act(const client::ArmTimer& arm);
  void act(const client::Note&) {}
  void act(const client::End& end);
  void carry_out(const client::Actions& actions);
  void carry_out_waiting();
  void on_event(const client::Event& event);

  Crowd& crowd_;
  const std::size_t number_;
  client::Membership membership_;
  std::unique_ptr<client::Connections> connections_;  // null after vanish()
  boost::asio::steady_timer timer_;
  std::deque<client::Event> waiting_;  // events that came while another was carried out
  bool busy_ = false;
  client::LinkId link_ = 0;
  int started_ = 0;  // the round whose group was started last
  std::optional<client::End> end_;
};

class Crowd {
 public:
  explicit Crowd(CrowdOptions options);

  /// Returns when every agent has started the workers of a round above `round`, with the number of
  /// that round.
  int join();
  int lose_one();
  int fail_one();
  /// Returns when every agent has its verdict; checks that it is success.
  void succeed();
  /// Returns when the coordinator has read everything that was sent to it: each agent's beat is
  /// answered in the order of its link.
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
  std::size_t unanswered_ = 0;  // beats
  std::size_t ended_ = 0;
  Traffic traffic_;
};

}  // namespace ddprun::bench

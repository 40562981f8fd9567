#include "bench/rendezvous/crowd.hpp"

#include <cstdio>
#include <stdexcept>
#include <utility>
#include <variant>

namespace ddprun::bench {

using namespace client;

namespace {

// A phase that takes longer than this has failed.
constexpr Duration kStalled = std::chrono::seconds(60);

MembershipOptions options_of(const CrowdOptions& crowd, std::size_t number) {
  char name[32];
  std::snprintf(name, sizeof(name), "node-%05zu", number);
  MembershipOptions options;
  options.coordinator = crowd.host + ":" + std::to_string(crowd.port);
  protocol::Hello& hello = options.hello;
  hello.run_id = RunId(crowd.run_id);
  hello.agent = AgentId(crowd.run_id + "-" + name);
  hello.host = name;
  hello.local_world_size = 8;
  hello.fingerprint = "5f1d2c3b";
  hello.terms.nodes_min = static_cast<int>(crowd.agents) - 1;
  hello.terms.nodes_max = static_cast<int>(crowd.agents);
  hello.terms.max_restarts = 3;
  return options;
}

}  // namespace

CrowdAgent::CrowdAgent(Crowd& crowd, std::size_t number)
    : crowd_(crowd),
      number_(number),
      membership_(options_of(crowd.options_, number), Clock::now()),
      connection_(make_tcp_link(
          crowd.io_.get_executor(), crowd.options_.host, crowd.options_.port,
          [this](const Event& event) { on_event(event); },
          LinkSecret{crowd.options_.tls, crowd.options_.run_id})),
      timer_(crowd.io_) {}

void CrowdAgent::begin() {
  busy_ = true;
  carry_out(membership_.begin(Clock::now()));
  carry_out_waiting();
}

void CrowdAgent::on_event(const Event& event) {
  if (std::holds_alternative<LinkUp>(event)) {
    ++crowd_.traffic_.links;
    --crowd_.connecting_;
    crowd_.connect_next();
  } else if (const auto* down = std::get_if<LinkDown>(&event)) {
    throw std::runtime_error("agent " + std::to_string(number_) + ": " + down->evidence);
  } else if (const auto* incoming = std::get_if<Incoming>(&event)) {
    const bool beat = std::holds_alternative<protocol::Beat>(incoming->message);
    if (beat && crowd_.unanswered_ > 0) --crowd_.unanswered_;
    if (crowd_.keeps_traffic()) crowd_.traffic_.down.push_back(incoming->message);
  }
  feed(event);
}

void CrowdAgent::feed(const Event& event) {
  if (!alive()) return;
  if (std::exchange(busy_, true)) {
    waiting_.push_back(event);
    return;
  }
  carry_out(membership_.step(event, Clock::now()));
  carry_out_waiting();
}

void CrowdAgent::carry_out_waiting() {
  while (!waiting_.empty()) {
    const Event next = std::move(waiting_.front());
    waiting_.pop_front();
    carry_out(membership_.step(next, Clock::now()));
  }
  busy_ = false;
}

void CrowdAgent::carry_out(const Actions& actions) {
  for (const Action& action : actions) {
    std::visit([this](const auto& one) { act(one); }, action);
  }
}

void CrowdAgent::act(const Connect& connect) {
  link_ = connect.link;
  connection_->connect(link_);
}

void CrowdAgent::act(const CloseLink& close) {
  connection_->close(close.link);
}

void CrowdAgent::act(const SendMessage& send) {
  if (crowd_.keeps_traffic()) crowd_.traffic_.up.push_back(send.message);
  connection_->send(send.link, send.message);
}

void CrowdAgent::act(const OpenStore&) {
  feed(StoreOpened{static_cast<std::uint16_t>(10'000 + number_ % 50'000)});
}

// No rank connects to the stores of the crowd.
void CrowdAgent::act(const ReleaseStore& release) {
  feed(StoreIdle{release.round});
}

void CrowdAgent::act(const StartGroup& start) {
  const int before = std::exchange(started_, start.round.stamp.number.value());
  if (before <= crowd_.floor_ && started_ > crowd_.floor_) --crowd_.behind_;
  feed(GroupRunning{start.round.stamp.number});
}

void CrowdAgent::act(const StopGroup& stop) {
  feed(GroupGone{stop.round, protocol::Milliseconds(0), 0, 0});
}

void CrowdAgent::act(const ArmTimer& arm) {
  timer_.expires_at(arm.deadline);
  timer_.async_wait([this](const boost::system::error_code& why) {
    if (!why) feed(Tick{});
  });
}

void CrowdAgent::act(const End& end) {
  end_ = end;
  timer_.cancel();
  ++crowd_.ended_;
}

void CrowdAgent::fail() {
  feed(GroupFailed{Round(started_), WorkerExit{}});
  feed(GroupGone{Round(started_), protocol::Milliseconds(0), 0, 0});
}

void CrowdAgent::succeed() {
  feed(GroupSucceeded{Round(started_)});
  feed(GroupGone{Round(started_), protocol::Milliseconds(0), 0, 0});
}

void CrowdAgent::beat() {
  act(SendMessage{link_, protocol::Beat{}});
}

void CrowdAgent::vanish() {
  timer_.cancel();
  connection_.reset();
  --crowd_.alive_;
}

Crowd::Crowd(CrowdOptions options) : options_(std::move(options)), alive_(options_.agents) {
  for (std::size_t number = 0; number < options_.agents; ++number) {
    agents_.emplace_back(*this, number);
  }
}

template <class Condition>
void Crowd::run_until(const std::string& what, Condition condition) {
  const TimePoint deadline = Clock::now() + kStalled;
  while (!condition()) {
    if (io_.run_one_until(deadline) == 0) throw std::runtime_error(what + ": stalled");
  }
}

void Crowd::connect_next() {
  while (begun_ < agents_.size() && connecting_ < options_.connecting_max) {
    ++connecting_;
    agents_[begun_++].begin();
  }
}

int Crowd::await_round_above(int round) {
  floor_ = round;
  behind_ = 0;
  for (const CrowdAgent& agent : agents_) {
    if (agent.alive() && agent.round() <= floor_) ++behind_;
  }
  run_until("round " + std::to_string(round + 1), [this] { return behind_ == 0; });
  return agents_.front().round();
}

int Crowd::join() {
  connect_next();
  return await_round_above(0);
}

CrowdAgent& Crowd::one_in_the_middle() {
  return agents_[agents_.size() / 2];
}

int Crowd::lose_one() {
  const int before = agents_.front().round();
  one_in_the_middle().vanish();
  return await_round_above(before);
}

int Crowd::fail_one() {
  const int before = agents_.front().round();
  agents_.back().fail();
  return await_round_above(before);
}

void Crowd::succeed() {
  for (CrowdAgent& agent : agents_) {
    if (agent.alive()) agent.succeed();
  }
  run_until("the verdict", [this] { return ended_ == alive_; });
  for (const CrowdAgent& agent : agents_) {
    if (agent.alive() && agent.end()->exit_code != 0) throw std::runtime_error(agent.end()->text);
  }
}

void Crowd::settle() {
  unanswered_ = alive_;
  for (CrowdAgent& agent : agents_) {
    if (agent.alive()) agent.beat();
  }
  run_until("beats", [this] { return unanswered_ == 0; });
}

}  // namespace ddprun::bench

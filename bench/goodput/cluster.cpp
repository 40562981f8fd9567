#include "bench/goodput/cluster.hpp"

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/limits.hpp"
#include "bench/goodput/node.hpp"

namespace ddprun::bench {
namespace {

// Silence is not simulated: see cluster.hpp.
constexpr std::chrono::hours kHeartbeat(24 * 365);
constexpr Duration kBetweenFailures = std::chrono::microseconds(1);

std::size_t index(int value) {
  return static_cast<std::size_t>(value);
}

}  // namespace

Cluster::Cluster(ClusterOptions options)
    : options_(options), random_(options.seed), nodes_(index(options.nodes + options.spares)) {
  run_ = std::make_unique<round::Run>(round::RunOptions{RunId("goodput"), "c1"});
  by_link_.push_back(-1);  // no link has the number 0
}

Cluster::~Cluster() = default;

protocol::Terms Cluster::terms() const {
  protocol::Terms terms;
  terms.nodes_max = options_.nodes;
  terms.nodes_min = options_.nodes_min == 0 ? options_.nodes : options_.nodes_min;
  terms.max_restarts = kRestartsMax;
  terms.join_timeout = kHeartbeat;
  terms.last_call_timeout = std::chrono::seconds(10);
  terms.keep_alive_interval = kHeartbeat;
  return terms;
}

double Cluster::length_seconds() const {
  return std::chrono::duration<double>(options_.length).count();
}

// Measured from the first step of the first round.
void Cluster::run() {
  for (int node = 0; node < static_cast<int>(nodes_.size()); ++node) start(node);
  while (!measuring_) {
    if (!timeline_.run_one(timeline_.now() + std::chrono::hours(1))) {
      throw std::runtime_error("the first round never trains");
    }
  }
  const TimePoint end = measured_from_ + options_.length;
  schedule_failure();
  while (timeline_.run_one(end)) {
  }
  if (waits_) ledger_.mark(Phase::kAwaitNode, end);
  ledger_.finish(end);
}

void Cluster::start(int id) {
  nodes_[index(id)] = std::make_unique<Node>(*this, id, ++processes_);
  nodes_[index(id)]->begin();
}

round::LinkId Cluster::open_link(int id) {
  by_link_.push_back(id);
  return round::LinkId(by_link_.size() - 1);
}

void Cluster::schedule_failure() {
  const double all = static_cast<double>(nodes_.size()) / options_.nodes;
  const double uniform = random_.between(1, 1'000'000'000) / 1e9;
  const double mean = std::chrono::duration<double>(options_.mtbf).count() / all;
  const auto after = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(-std::log(uniform) * mean));
  timeline_.after(std::max(after, kBetweenFailures), [this] {
    strike();
    schedule_failure();
  });
}

void Cluster::strike() {
  const int id = random_.between(0, static_cast<int>(nodes_.size()) - 1);
  const bool takes_node = random_.chance(options_.lost_percent);
  const bool wanted = options_.strikes == Strikes::kAlways || ledger_.trains();
  Node* node = nodes_[index(id)].get();
  if (node == nullptr || !wanted) return;
  if (takes_node) return lose(id);
  if (node->round() == 0) return;  // no process of the program
  ++failures_;
  interrupt();
  timeline_.after(options_.times.detect, [this, id, process = node->process()] {
    Node* its = nodes_[index(id)].get();
    if (its == nullptr || its->process() != process) return;
    ledger_.mark(Phase::kDetect, timeline_.now());
    its->fail_process();
  });
}

void Cluster::lose(int id) {
  ++failures_;
  ++nodes_lost_;
  const std::unique_ptr<Node> node = std::move(nodes_[index(id)]);
  if (node->assigned() == round_) interrupt();
  timeline_.after(options_.times.detect, [this, link = node->link()] {
    ledger_.mark(Phase::kDetect, timeline_.now());
    if (link != round::kNoLink) to_run(round::LinksLost{{{link, "connection closed"}}});
  });
  timeline_.after(options_.repair, [this, id] { start(id); });
}

/// By a failure. Another one of a round that has been struck changes nothing.
void Cluster::interrupt() {
  if (doomed_ == round_) return;
  doomed_ = round_;
  Duration lost{};
  if (ledger_.trains() && options_.checkpoint.count() > 0) {
    lost = ledger_.trained_for(timeline_.now()) % options_.checkpoint;
  }
  ledger_.interrupt(timeline_.now(), lost);
}

void Cluster::to_run(const round::Event& event) {
  const auto* received = std::get_if<round::Received>(&event);
  if (received != nullptr && by_link_[received->link.value()] < 0) return;
  TimePoint ready = timeline_.now();
  for (const round::Action& action : run_->step(event, timeline_.now())) {
    if (const auto* sent = std::get_if<round::Send>(&action)) send(*sent, ready);
    if (const auto* timer = std::get_if<round::ArmTimer>(&action)) arm(timer->deadline);
    if (const auto* close = std::get_if<round::Close>(&action)) by_link_[close->link.value()] = -1;
    if (const auto* end = std::get_if<round::Finish>(&action)) {
      throw std::runtime_error("the run has ended: " + end->reason);
    }
  }
  waits_ = waits_ || run_->phase() == round::Phase::kForming;
}

void Cluster::send(const round::Send& sent, TimePoint& ready) {
  const int id = by_link_[sent.link.value()];
  Node* node = id < 0 ? nullptr : nodes_[index(id)].get();
  const auto* start = std::get_if<protocol::StartRound>(&sent.message);
  if (start != nullptr) {
    begin_round(*start);
    ready += options_.times.per_node;
  }
  if (node == nullptr || node->link() != sent.link) return;  // lost, which is not noticed yet
  if (start != nullptr) node->assign(round_);
  node->deliver_at((start != nullptr ? ready : timeline_.now()) + options_.times.link,
                   sent.message);
}

void Cluster::begin_round(const protocol::StartRound& start) {
  const int number = start.stamp.number.value();
  if (number == round_) return;
  if (round_ != 0) interrupt();  // by a node that joins, if by nothing else
  if (waits_) ledger_.mark(Phase::kAwaitNode, timeline_.now());
  waits_ = false;
  round_ = number;
  group_size_ = start.group_size;
  taken_ = started_ = ready_ = 0;
}

void Cluster::arm(TimePoint deadline) {
  deadline_ = deadline;
  if (deadline >= wakes_at_) return;
  wakes_at_ = deadline;
  timeline_.at(deadline, [this, deadline] {
    if (wakes_at_ == deadline) wake();
  });
}

void Cluster::wake() {
  wakes_at_ = TimePoint::max();
  if (timeline_.now() < deadline_) return arm(deadline_);
  to_run(round::Tick{});
}

void Cluster::on_round_taken(int number, bool first) {
  if (number != round_) return;
  if (first && number > 1) ++spares_used_;
  if (++taken_ == group_size_) ledger_.mark(Phase::kAgree, timeline_.now());
}

void Cluster::on_group_started(int number) {
  if (number != round_) return;
  if (++started_ == group_size_) ledger_.mark(Phase::kStop, timeline_.now());
}

void Cluster::on_ready(int number) {
  if (number != round_ || ++ready_ < group_size_) return;
  const TimePoint all = timeline_.now();
  const Times& times = options_.times;
  ledger_.mark(Phase::kStart, all);
  const TimePoint rebuilt = all + times.rebuild;
  const TimePoint transferred = rebuilt + times.transfer;
  timeline_.at(transferred + times.first_step, [this, number, rebuilt, transferred] {
    if (number != round_ || doomed_ == number) return;
    ledger_.mark(Phase::kRebuild, rebuilt);
    ledger_.mark(Phase::kTransfer, transferred);
    train();
  });
}

void Cluster::train() {
  if (!std::exchange(measuring_, true)) {
    measured_from_ = timeline_.now();
    ledger_ = Ledger();
    failures_ = nodes_lost_ = spares_used_ = 0;
  }
  ledger_.train(timeline_.now(), static_cast<double>(group_size_) / options_.nodes);
}

}  // namespace ddprun::bench

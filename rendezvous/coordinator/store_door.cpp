#include "rendezvous/coordinator/store_door.hpp"

#include <poll.h>
#include <spdlog/logger.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace ddprun::coordinator {

namespace {

constexpr std::size_t kHostsNamed = 8;
/// A node's word that its workers are gone takes another way than the first bytes of a new one.
constexpr Duration kLateKept = std::chrono::seconds(1);
/// How long the store of a daemon keeps what it has without a client. An agent of torchrun stays
/// connected as long as its rendezvous is of use.
constexpr std::chrono::minutes kStoreKept{10};

bool has_gone(int socket) {
  pollfd one{socket, POLLRDHUP, 0};
  return ::poll(&one, 1, 0) > 0;
}

}  // namespace

void StoreGate::begin(Round ended, const std::vector<round::LeftOnNode>& nodes) {
  ended_ = ended;
  waits_for_.clear();
  by_address_.clear();
  for (const round::LeftOnNode& node : nodes) {
    for (const std::string& address : std::set(node.addresses.begin(), node.addresses.end())) {
      ++by_address_[address].all;
      if (!node.may_have) ++by_address_[address].left;
    }
    if (node.may_have) waits_for_.push_back(node);
  }
}

bool StoreGate::look(const round::Run& run) {
  const auto has_left = [&](const round::LeftOnNode& node) {
    if (run.may_have(node.node, ended_)) return false;
    for (const std::string& address : std::set(node.addresses.begin(), node.addresses.end())) {
      ++by_address_[address].left;
    }
    return true;
  };
  return std::erase_if(waits_for_, has_left) > 0;
}

std::string StoreGate::awaited() const {
  std::string hosts;
  for (std::size_t i = 0; i < std::min(waits_for_.size(), kHostsNamed); ++i) {
    hosts += (hosts.empty() ? "" : ", ") + waits_for_[i].host;
  }
  const std::size_t more = waits_for_.size() - std::min(waits_for_.size(), kHostsNamed);
  return more == 0 ? hosts : hosts + " and " + std::to_string(more) + " more";
}

StoreGate::Answer StoreGate::of(const std::string& address) const {
  if (is_open()) return Answer::kWelcome;
  const auto found = by_address_.find(address);
  if (found == by_address_.end()) return Answer::kWaits;
  const Nodes& nodes = found->second;
  if (nodes.left == nodes.all) return Answer::kWelcome;
  return nodes.left == 0 ? Answer::kIsLate : Answer::kWaits;
}

Result<void> StoreDoor::start() {
  return open();
}

// One run's agents are of one kind. A daemon serves torchrun too.
Result<void> StoreDoor::open() {
  const auto torchrun = options_.only_run ? store::Torchrun::kRefused : store::Torchrun::kServed;
  store::ServerOptions options{options_.store, options_.log, torchrun, options_.peers};
  if (!options_.only_run) options.forgets_after = kStoreKept;
  live_ = std::make_unique<store::Server>(executor_, std::move(options));
  return live_->start();
}

void StoreDoor::close() {
  waiting_.clear();
  look_at_.reset();
  if (live_) live_->close();
  for (const auto& [round, store] : ended_) store->close();  // their users are told so
}

Result<void> StoreDoor::begin_fresh(Round ended, const std::vector<round::LeftOnNode>& nodes,
                                    std::function<void()> idle) {
  live_->when_idle(std::move(idle));
  ended_.insert_or_assign(ended, std::move(live_));
  told_ = false;
  gate_.begin(ended, nodes);
  return open();
}

void StoreDoor::enter(Link& link) {
  if (gate_.is_open() || gate_.of(net::address_text(link.from)) == StoreGate::Answer::kWelcome) {
    return adopt(link);
  }
  links_.hold_at_gate(link);
  if (waiting_.empty()) look_at_ = Clock::now() + kLateKept;
  waiting_.emplace_back(Clock::now(), link.id);
}

void StoreDoor::adopt(Link& link) {
  const std::string received = std::exchange(link.held, {});
  sockaddr_storage from{};
  static_assert(sizeof(from) >= sizeof(link.from));
  std::memcpy(&from, &link.from, sizeof(link.from));
  live_->adopt(links_.release(link), from, received);
}

// One that has gone was of the old round: what it has sent has no effect.
void StoreDoor::pass() {
  const TimePoint now = Clock::now();
  for (const auto& [since, id] : std::exchange(waiting_, {})) {
    Link* link = links_.find(id);
    if (link == nullptr || link->state != LinkState::kAtGate) continue;
    using Answer = StoreGate::Answer;
    const Answer answer = gate_.of(net::address_text(link->from));
    if (answer == Answer::kWelcome && !has_gone(link->fd)) {
      adopt(*link);
    } else if (answer == Answer::kWelcome ||
               (answer == Answer::kIsLate && now - since >= kLateKept)) {
      links_.log_once(*link, "a client of the round before, whose store is closed");
      links_.mark_closed(*link);
    } else {
      waiting_.emplace_back(since, id);
    }
  }
  if (waiting_.empty()) look_at_.reset();
}

void StoreDoor::look_again() {
  pass();
  tell_who_is_waited_for();
  if (look_at_) look_at_ = Clock::now() + kLateKept;
}

void StoreDoor::tell_who_is_waited_for() {
  if (waiting_.empty() || !options_.log || std::exchange(told_, true)) return;
  options_.log->warn(
      "workers of round {} wait for the store: those of the round before have not ended on {}",
      gate_.ended().value() + 1, gate_.awaited());
}

}  // namespace ddprun::coordinator

#include "tests/failover/server.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "tests/failover/process.hpp"
#include "tests/sim/words.hpp"

namespace ddprun::failover {

using namespace protocol;

namespace {

// coordinator::Limits::idle_timeout.
constexpr Duration kIdleMax = seconds(10);

}  // namespace

std::string address_of(int host) {
  const int number = host + 1;
  return "10." + std::to_string(number >> 16) + "." + std::to_string((number >> 8) & 255) + "." +
         std::to_string(number & 255);
}

int host_at(const std::string& address) {
  int parts[3] = {};
  const bool is_one =
      std::sscanf(address.c_str(), "10.%d.%d.%d", &parts[0], &parts[1], &parts[2]) == 3;
  return is_one ? (parts[0] << 16) + (parts[1] << 8) + parts[2] - 1 : -1;
}

Server::Server(Net& net, World::Process& owner, Options options)
    : net_(net), owner_(owner), options_(std::move(options)) {}

Server::~Server() {
  for (const auto& [id, link] : links_) net_.close(link.socket);
  net_.unlisten(options_.host, options_.port);
}

void Server::ready() {
  read_all();
  tell_lost();
  close_idle();
  if (!entry_ || entry_->is_finished || !entry_->armed) return;
  if (owner_.local_now() < *entry_->armed) return;
  entry_->armed.reset();
  step(entry_, round::Tick{});
  tell_lost();
}

void Server::hear_of(SocketId socket) {
  const auto found = by_socket_.find(socket);
  if (found != by_socket_.end()) unread_.insert(found->second);
}

void Server::read_all() {
  for (SocketId socket = net_.accept(options_.host, options_.port); socket != kNoSocket;
       socket = net_.accept(options_.host, options_.port)) {
    links_[++accepted_] = Link{socket, nullptr, AgentId()};
    by_socket_[socket] = accepted_;
    await_word(accepted_);
    unread_.insert(accepted_);
  }
  for (const std::uint64_t id : std::exchange(unread_, {})) read(id);
}

void Server::read(std::uint64_t id) {
  for (auto found = links_.find(id); found != links_.end(); found = links_.find(id)) {
    Socket& socket = net_.at(found->second.socket);
    if (!socket.inbox.empty()) {
      Message message = std::move(socket.inbox.front());
      socket.inbox.pop_front();
      on_message(id, std::move(message));
      continue;
    }
    if (socket.ended.empty()) return;
    if (found->second.entry) {
      lost_[found->second.entry].links.push_back({round::LinkId(id), socket.ended});
    }
    erase(found);
  }
}

void Server::await_word(std::uint64_t id) {
  mute_.insert_or_assign(id, owner_.local_now());
  owner_.wake_at(owner_.local_now() + kIdleMax);
}

// Where another one leads holds as long as it repeats that on its link.
void Server::erase(std::map<std::uint64_t, Link>::iterator link) {
  if (link->first == leader_) {
    moved_.reset();
    leader_ = 0;
  }
  net_.close(link->second.socket);
  by_socket_.erase(link->second.socket);
  mute_.erase(link->first);
  links_.erase(link);
}

void Server::on_message(std::uint64_t id, Message message) {
  Link& link = links_.at(id);
  mute_.erase(id);
  const bool is_hello = std::holds_alternative<Hello>(message);
  if (!link.entry && is_hello) return on_hello(id, std::move(message));
  const auto* lead = std::get_if<Lead>(&message);
  if (!link.entry && lead != nullptr) return on_lead(id, *lead);
  if (!link.entry) return refuse(id, "the first message must be hello");
  step(link.entry, round::Received{round::LinkId(id), peer_of(link), std::move(message)});
}

void Server::on_hello(std::uint64_t id, Message message) {
  const Hello hello = std::get<Hello>(message);
  if (moved_ && options_.run == hello.run_id) {
    if (goes_there(hello)) {
      send(id, *moved_);
      return close(id);
    }
    moved_.reset();
    leader_ = 0;
  }
  EntryPtr entry = entry_;
  if (entry && entry->run.starts_new_run(hello, owner_.local_now())) entry = nullptr;
  const bool begins = entry == nullptr;
  if (begins && runs_begun_ > 0 && entry_) return close(id);
  if (begins) {
    round::RunOptions options{options_.run,
                              options_.author + "." + std::to_string(runs_begun_ + 1)};
    if (entry_) options.succeeded = entry_->run.success();
    options.succession = options_.succession;
    entry = std::make_shared<Entry>(std::move(options));
  }
  Link& link = links_.at(id);
  link.entry = entry;
  link.agent = hello.agent;
  step(entry, round::Received{round::LinkId(id), peer_of(link), std::move(message)});
  if (!begins || entry->run.status(owner_.local_now()).counters.joins == 0) return;
  ++runs_begun_;
  entry_ = entry;
}

Moved Server::place_of(std::uint64_t id, const Lead& lead) const {
  return {address_of(net_.at(links_.at(id).socket).peer_host), lead.port};
}

bool Server::goes_there(const Hello& hello) const {
  static const std::string kNone;
  const std::string& origin = hello.claim ? hello.claim->succession.origin : kNone;
  return round::may_lead(said_, {hello.terms, hello.fingerprint, origin, hello.claim.has_value()});
}

void Server::on_lead(std::uint64_t id, const Lead& lead) {
  if (may_hand_over(id, lead)) return hand_over(id, lead);
  if (moved_ && leader_ != id) {
    send(id, *moved_);
    return close(id);
  }
  if (meets_ && entry_ && entry_->run.may_be_rival(lead, false)) meets_(place_of(id, lead));
  refuse(id, "this one does not yield to it");
}

void Server::refuse(std::uint64_t id, const std::string& why) {
  send(id, Refused{RefusalCode::kMalformed, why, {}});
  close(id);
}

bool Server::may_hand_over(std::uint64_t id, const Lead& lead) const {
  const bool is_known = !moved_ || leader_ == id || *moved_ == place_of(id, lead);
  if (!is_known) return false;
  return !entry_ || (entry_->run.yields_to(lead, false) && entry_->run.rounds().can_be(lead.round));
}

void Server::hand_over(std::uint64_t id, const Lead& lead) {
  await_word(id);
  if (entry_ && entry_->run.gathers_majority()) return send(id, Beat{});
  leader_ = id;
  moved_ = place_of(id, lead);
  said_ = lead;
  owner_.say("  " + options_.author + " hands over to " + moved_->address);
  send(id, Beat{});
  for (const auto& [other, link] : links_) {
    if (link.entry) send(other, *moved_);
  }
  if (entry_) finish(entry_);
  entry_.reset();  // if the other one is gone, a run may begin here
}

void Server::step(EntryPtr entry, const round::Event& event) {
  perform(entry, entry->run.step(event, owner_.local_now()));
}

void Server::perform(const EntryPtr& entry, round::Actions actions) {
  std::vector<World::Sent> rounds;
  for (const round::Action& action : actions) {
    const auto* sent = std::get_if<round::Send>(&action);
    const auto* start = sent == nullptr ? nullptr : std::get_if<StartRound>(&sent->message);
    const auto found = start == nullptr ? links_.end() : links_.find(sent->link.value());
    if (found != links_.end()) rounds.push_back({*start, found->second.agent});
  }
  if (!rounds.empty()) owner_.on_rounds_sent(rounds, entry->run.authority().base());
  for (round::Action& action : actions) {
    if (auto* one = std::get_if<round::Send>(&action)) {
      send(one->link.value(), std::move(one->message));
    } else if (const auto* closing = std::get_if<round::Close>(&action)) {
      close(closing->link.value());
    } else if (const auto* timer = std::get_if<round::ArmTimer>(&action)) {
      entry->armed = timer->deadline;
      owner_.wake_at(timer->deadline);
    } else if (const auto* said = std::get_if<round::Note>(&action)) {
      owner_.say("  " + options_.author + ": " + said->text);
    } else if (const auto* abdicated = std::get_if<round::Abdicate>(&action)) {
      owner_.say("  " + options_.author + " abdicates: " + abdicated->reason);
      if (options_.on_abdicate) {
        owner_.post([on = options_.on_abdicate, why = abdicated->reason] { on(why); });
      }
    } else if (std::holds_alternative<round::Resign>(action)) {
      owner_.say("  " + options_.author + " resigns");
      net_.unlisten(options_.host, options_.port);
      finish(entry);
      if (resigned_) owner_.post(resigned_);
    } else {
      owner_.say("  " + options_.author + " has finished its run");
      finish(entry);
    }
  }
}

void Server::send(std::uint64_t id, Message message) {
  const auto found = links_.find(id);
  if (found == links_.end()) return;
  const Link& link = found->second;
  owner_.on_sent(net_.at(link.socket).peer_host, message);
  if (owner_.is_traced() && !sim::is_heartbeat(message)) {
    const int host = net_.at(link.socket).peer_host;
    owner_.say("  " + options_.author + " -> n" + std::to_string(host) + ": " +
               sim::words(message));
  }
  net_.send(link.socket, std::move(message));
}

void Server::close(std::uint64_t id) {
  const auto found = links_.find(id);
  if (found != links_.end()) erase(found);
}

// Agents that are still connected had time to disconnect.
void Server::finish(const EntryPtr& entry) {
  if (std::exchange(entry->is_finished, true)) return;
  std::vector<std::uint64_t> all;
  for (const auto& [id, link] : links_) {
    if (link.entry == entry) all.push_back(id);
  }
  for (const std::uint64_t id : all) close(id);
  lost_.erase(entry);
}

void Server::tell_lost() {
  while (!lost_.empty()) {
    const auto lost = lost_.extract(lost_.begin());
    step(lost.key(), lost.mapped());
  }
}

void Server::close_idle() {
  std::vector<std::uint64_t> idle;
  for (const auto& [id, since] : mute_) {
    if (owner_.local_now() - since >= kIdleMax) idle.push_back(id);
  }
  for (const std::uint64_t id : idle) close(id);
}

void Server::shut_down(int exit_code, const std::string& reason) {
  if (entry_) step(entry_, round::Shutdown{exit_code, reason});
  tell_lost();
}

bool Server::is_settled() const {
  return !entry_ || entry_->is_finished;
}

round::Peer Server::peer_of(const Link& link) const {
  const Socket& socket = net_.at(link.socket);
  return {address_of(socket.peer_host), address_of(socket.host)};
}

}  // namespace ddprun::failover

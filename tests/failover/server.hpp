// Server: a coordinator in a process of the world: a real round::Run behind the links of a port,
// with what rendezvous/coordinator/server_hello, server_runs and server_succession do for it, in
// the same order. Owned by its Node; everything happens in ready().
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "rendezvous/round/run.hpp"
#include "tests/failover/world.hpp"

namespace ddprun::failover {

class Server {
 public:
  struct Options {
    RunId run;
    std::string author;
    int host = 0;
    int port = 0;
    round::SuccessionOptions succession;
    std::function<void(const std::string&)> on_abdicate;
  };
  /// Listens there already.
  Server(Net& net, World::Process& owner, Options options);
  /// Closes all links, and the port.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Its `meets` gets where another leader is that began apart and is to yield to this one.
  void on_rival(std::function<void(const protocol::Moved&)> meets) { meets_ = std::move(meets); }
  /// `resigned` is posted when its node has left, and the others look for another one.
  void on_resigned(std::function<void()> resigned) { resigned_ = std::move(resigned); }
  /// Something has come there; other sockets are ignored.
  void hear_of(SocketId socket);
  /// Accepts, reads all that has come, and tells its run what is due.
  void ready();
  void shut_down(int exit_code, const std::string& reason);
  /// No run of it is unfinished.
  [[nodiscard]] bool is_settled() const;
  /// Its run, also one that is over; null before the first hello.
  [[nodiscard]] const round::Run* run() const { return entry_ ? &entry_->run : nullptr; }
  [[nodiscard]] bool is_finished() const { return entry_ && entry_->is_finished; }
  [[nodiscard]] bool is_candidate() const { return options_.succession.candidate.has_value(); }
  [[nodiscard]] bool has_moved() const { return moved_.has_value(); }
  [[nodiscard]] int port() const { return options_.port; }
  [[nodiscard]] const std::string& name() const { return options_.author; }
  [[nodiscard]] std::optional<TimePoint> armed() const {
    return entry_ ? entry_->armed : std::nullopt;
  }
  [[nodiscard]] int links() const { return static_cast<int>(links_.size()); }

 private:
  struct Entry {
    explicit Entry(round::RunOptions options) : run(std::move(options)) {}
    round::Run run;
    bool is_finished = false;
    std::optional<TimePoint> armed{};
  };
  using EntryPtr = std::shared_ptr<Entry>;
  struct Link {
    SocketId socket = kNoSocket;
    EntryPtr entry;
    AgentId agent;  // that said hello
  };
  void read_all();
  void read(std::uint64_t id);
  /// Or the link is closed.
  void await_word(std::uint64_t id);
  void erase(std::map<std::uint64_t, Link>::iterator link);
  void on_message(std::uint64_t id, protocol::Message message);
  void on_hello(std::uint64_t id, protocol::Message message);
  [[nodiscard]] bool goes_there(const protocol::Hello& hello) const;
  void on_lead(std::uint64_t id, const protocol::Lead& lead);
  [[nodiscard]] bool may_hand_over(std::uint64_t id, const protocol::Lead& lead) const;
  [[nodiscard]] protocol::Moved place_of(std::uint64_t id, const protocol::Lead& lead) const;
  void hand_over(std::uint64_t id, const protocol::Lead& lead);
  void step(EntryPtr entry, const round::Event& event);  // its last link may be closed meanwhile
  void perform(const EntryPtr& entry, round::Actions actions);
  void send(std::uint64_t id, protocol::Message message);
  void close(std::uint64_t id);
  void refuse(std::uint64_t id, const std::string& why);
  void finish(const EntryPtr& entry);
  void tell_lost();
  void close_idle();
  [[nodiscard]] round::Peer peer_of(const Link& link) const;

  Net& net_;
  World::Process& owner_;
  Options options_;
  EntryPtr entry_;
  std::map<std::uint64_t, Link> links_;
  std::unordered_map<SocketId, std::uint64_t> by_socket_;
  std::set<std::uint64_t> unread_;
  std::map<std::uint64_t, TimePoint> mute_;  // links that are to say something, since when
  std::map<EntryPtr, round::LinksLost> lost_;
  std::function<void(const protocol::Moved&)> meets_;
  std::function<void()> resigned_;
  std::optional<protocol::Moved> moved_;
  std::uint64_t leader_ = 0;  // the link that says so
  protocol::Lead said_;
  std::uint64_t accepted_ = 0;
  int runs_begun_ = 0;
};

/// As agents and coordinators name it to each other.
[[nodiscard]] std::string address_of(int host);
/// -1: no host has it.
[[nodiscard]] int host_at(const std::string& address);

}  // namespace ddprun::failover
